// sum_of_pushes.cpp -- sums pushes row by row.
#include "ps/update/sum_of_pushes.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "base/with_type.hpp"

namespace capstan::ps {
namespace {

/// Returns the union of the pushes' rows in ascending order, or all rows if any push is dense.
std::vector<std::uint32_t> rows_of(std::span<const HeldPush* const> pushes, std::uint64_t rows) {
  const bool dense = std::any_of(pushes.begin(), pushes.end(), [](const HeldPush* push) {
    return push->header.kind == protocol::PushKind::dense;
  });
  std::vector<std::uint32_t> all;
  if (dense) {
    all.resize(rows);
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }
  for (const HeldPush* push : pushes) all.insert(all.end(), push->rows.begin(), push->rows.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Integers round towards zero. The divisor need not fit into A.
template <class A>
A quotient_of_sum(A sum, int divisor) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(std::int64_t{sum} / divisor);
  } else {
    return sum / static_cast<A>(divisor);
  }
}

template <class T>
std::vector<std::byte> sum(std::span<const HeldPush* const> pushes, std::span<const std::uint32_t> rows,
                           bool dense, std::uint64_t width, int divisor) {
  using A = Arithmetic<T>;
  using W = Wrapping<T>;
  std::vector<A> sums(rows.size() * width);
  for (const HeldPush* push : pushes) {
    const auto* values = reinterpret_cast<const T*>(push->values.data());
    for (std::uint64_t i = 0; i < push->header.rows; ++i) {
      const std::uint64_t row =
          push->header.kind == protocol::PushKind::dense ? push->header.first_row + i : push->rows[i];
      const auto location =
          dense ? row
                : static_cast<std::uint64_t>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
      for (std::uint64_t j = 0; j < width; ++j) {
        sums[location * width + j] = static_cast<A>(static_cast<W>(sums[location * width + j]) +
                                                    static_cast<W>(values[i * width + j]));
      }
    }
  }
  std::vector<std::byte> out(sums.size() * sizeof(T));
  auto* to = reinterpret_cast<T*>(out.data());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    to[i] = static_cast<T>(divisor == 1 ? sums[i] : quotient_of_sum(sums[i], divisor));
  }
  return out;
}

}  // namespace

HeldPush sum_of(std::span<const HeldPush* const> pushes, DType dtype, std::uint64_t width, std::uint64_t rows,
                int divisor) {
  HeldPush out;
  out.rows = rows_of(pushes, rows);
  const bool dense = out.rows.size() == rows;
  out.values = with_type(
      dtype, [&]<class T>(std::type_identity<T>) { return sum<T>(pushes, out.rows, dense, width, divisor); });
  out.header = pushes.front()->header;
  out.header.kind = dense ? protocol::PushKind::dense : protocol::PushKind::sparse;
  out.header.rows = static_cast<std::uint32_t>(out.rows.size());
  out.header.first_row = 0;
  out.header.first_part = out.header.last_part = 1;
  if (dense) out.rows.clear();
  return out;
}

}  // namespace capstan::ps
