// combine.cpp -- sorts positions by id and sums runs.
#include "client/combine.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>

namespace capstan::client {
namespace {

template <class T>
void add(std::byte* to, const std::byte* from, std::uint64_t width) {
  auto* sum = reinterpret_cast<T*>(to);
  const auto* term = reinterpret_cast<const T*>(from);
  for (std::uint64_t i = 0; i < width; ++i) sum[i] += term[i];
}

void add(DType dtype, std::byte* to, const std::byte* from, std::uint64_t width) {
  switch (dtype) {
    case DType::float32:
      return add<float>(to, from, width);
    case DType::float64:
      return add<double>(to, from, width);
    case DType::int64:
      return add<std::int64_t>(to, from, width);
  }
}

}  // namespace

bool all_different(std::span<const std::int64_t> ids) {
  return std::unordered_set<std::int64_t>(ids.begin(), ids.end()).size() == ids.size();
}

Combined combine(DType dtype, std::uint64_t width, std::span<const std::int64_t> ids, const void* rows) {
  std::vector<std::uint32_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return ids[a] < ids[b]; });

  const std::uint64_t row_bytes = width * size_of(dtype);
  const auto* from = static_cast<const std::byte*>(rows);
  Combined out;
  out.rows.reserve(ids.size() * row_bytes);
  for (const std::uint32_t at : order) {
    const std::byte* row = from + at * row_bytes;
    if (out.ids.empty() || out.ids.back() != ids[at]) {
      out.ids.push_back(ids[at]);
      out.rows.insert(out.rows.end(), row, row + row_bytes);
    } else {
      add(dtype, out.rows.data() + (out.ids.size() - 1) * row_bytes, row, width);
    }
  }
  return out;
}

}  // namespace capstan::client
