// embedding.cpp -- checks of embedding lookups, and removal of duplicate ids.
#include "capstan/embedding.hpp"

#include <fmt/format.h>

#include <bit>

#include "capstan/error.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::embedding {

Distinct::Distinct(std::span<const std::int64_t> given) {
  constexpr std::size_t kFree = ~std::size_t{0};
  const std::size_t capacity = std::bit_ceil(2 * given.size() + 2);
  const int bits = std::countr_zero(capacity);
  std::vector<std::size_t> slots(capacity, kFree);  // indices into `ids`, open addressing
  locations.reserve(given.size());
  for (const std::int64_t id : given) {
    // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): consecutive ids spread over the
    // table.
    std::size_t at = (static_cast<std::uint64_t>(id) * 0x9E3779B97F4A7C15U) >> (64 - bits);
    while (slots[at] != kFree && ids[slots[at]] != id) at = (at + 1) & (capacity - 1);
    if (slots[at] == kFree) {
      slots[at] = ids.size();
      ids.push_back(id);
    }
    locations.push_back(slots[at]);
  }
}

void check_ids(const std::string& table, std::span<const std::int64_t> ids, std::uint64_t rows) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<std::uint64_t>(ids[i]) < rows) continue;
    throw protocol::no_such_row(ids[i], i, table, rows);
  }
}

void check_max_norm(const std::string& table, std::optional<double> max_norm, bool floating_point) {
  if (!max_norm) return;
  if (!floating_point) {
    throw Error(
        Code::invalid_argument,
        fmt::format("max_norm is given for variable \"{}\", which is not of floating-point numbers", table));
  }
  if (*max_norm >= 0) return;
  throw Error(Code::invalid_argument,
              fmt::format("max_norm for variable \"{}\" is {}; expected 0 or more", table, *max_norm));
}

void check_gradient(const std::string& table, const Shape& gradient, const Shape& looked_up) {
  if (gradient == looked_up) return;
  throw Error(Code::invalid_argument,
              fmt::format("a gradient of shape {} is given for a lookup in variable \"{}\" of shape {}",
                          to_string(gradient), table, to_string(looked_up)));
}

}  // namespace capstan::embedding
