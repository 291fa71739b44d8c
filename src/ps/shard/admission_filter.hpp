// admission_filter.hpp -- counts occurrences of keys that are not in a dynamic table yet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/table_layout.hpp"

namespace capstan::ps {

/// A counting Bloom filter of 4 to 8 bytes per row of the shard. A key has three of the 128 counters of one
/// cache line; only the smallest of them are incremented ("conservative update": Estan and Varghese, "New
/// directions in traffic measurement and accounting", 2002). Every 16 occurrences, the counters of the next
/// line are halved. Keys that occur rarely are thus forgotten (as in Einziger et al., "TinyLFU", 2017).
///
/// A result is too large if other keys share all three counters. If half of the occurrences are of keys that
/// occur only once, this affects about 1 % of new keys. tests/ps/admission_filter_test.cpp requires less than
/// 2 %. One thread at a time.
class AdmissionFilter {
 public:
  /// `memory`: `lines` cache lines, a power of two, zeroed before the first process uses them. `occurrences`:
  /// how often `count` was called. Both must outlive this object.
  AdmissionFilter(std::byte* memory, std::uint64_t lines, std::uint64_t& occurrences) noexcept
      : lines_(reinterpret_cast<Line*>(memory)), line_count_(lines), occurrences_(occurrences) {}

  /// Counts an occurrence of a key. Returns the number of its recent occurrences, with this one; at most
  /// protocol::kMaxAdmitAfter.
  std::uint32_t count(std::uint64_t hash) noexcept;

 private:
  struct alignas(64) Line {
    std::uint8_t counters[64];  // two counters per byte
  };
  static_assert(sizeof(Line) == protocol::kFilterLineBytes);

  static std::uint32_t get(const Line& line, std::uint32_t at) noexcept {
    return line.counters[at / 2] >> (at % 2 * 4) & 15;
  }
  void age() noexcept;

  Line* lines_;
  std::uint64_t line_count_;
  std::uint64_t& occurrences_;
};

}  // namespace capstan::ps
