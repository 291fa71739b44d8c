// table_sums.hpp -- keys of a dynamic table to which closures push, and the sum of its elements.
#pragma once

#include <capstan/capstan.hpp>
#include <cstdint>
#include <numeric>
#include <span>

namespace capstan {

/// Returns one of 64 keys; closures i, i + 64, ... share one.
inline std::int64_t key_of(std::int64_t closure) {
  constexpr std::uint64_t kKeys = 64, kFarApart = 0x0123'4567'89ab'cdef;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(closure) % kKeys * kFarApart);
}

inline double sum_of(const DynamicTable<double>& table) {
  double sum = 0;
  table.export_rows([&](std::span<const std::int64_t>, const Rows<double>& rows) {
    sum = std::accumulate(rows.values.begin(), rows.values.end(), sum);
  });
  return sum;
}

}  // namespace capstan
