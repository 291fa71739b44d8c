// admission_filter.cpp -- see admission_filter.hpp.
#include "ps/shard/admission_filter.hpp"

#include <algorithm>
#include <array>

namespace capstan::ps {

std::uint32_t AdmissionFilter::count(std::uint64_t hash) noexcept {
  age();
  const std::uint64_t bits = protocol::hash_of(static_cast<std::int64_t>(hash));
  Line& line = lines_[bits >> 32 & (line_count_ - 1)];
  const std::array<std::uint32_t, 3> at{static_cast<std::uint32_t>(bits & 127),
                                        static_cast<std::uint32_t>(bits >> 7 & 127),
                                        static_cast<std::uint32_t>(bits >> 14 & 127)};
  const std::uint32_t least = std::min({get(line, at[0]), get(line, at[1]), get(line, at[2])});
  if (least == protocol::kMaxAdmitAfter) return least;
  for (const std::uint32_t one : at) {
    if (get(line, one) == least) line.counters[one / 2] += static_cast<std::uint8_t>(1U << (one % 2 * 4));
  }
  return least + 1;
}

/// Halves the counters of one line after every 16 occurrences, which is the number of keys per line.
void AdmissionFilter::age() noexcept {
  if (++occurrences_ % protocol::kKeysPerFilterLine != 0) return;
  Line& line = lines_[occurrences_ / protocol::kKeysPerFilterLine & (line_count_ - 1)];
  for (std::uint8_t& two : line.counters) two = two >> 1 & 0x77;
}

}  // namespace capstan::ps
