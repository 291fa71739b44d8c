// journal_memory.hpp -- stands in for the persistent memory of a journal, and detects writes past its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/push_format.hpp"
#include "ps/durability/journal.hpp"

namespace capstan::ps {

/// Zeroed memory for entries of at most `entry_bytes`, followed by a guard line that must not change.
class JournalMemory {
 public:
  explicit JournalMemory(std::uint64_t entry_bytes)
      : bytes_(Journal::bytes_for(entry_bytes)), lines_(protocol::round_up(bytes_) / sizeof(Line) + 1) {
    std::fill(end(), end() + sizeof(Line), kGuard);
  }

  /// Opens the journal in this memory, as a restarted process would.
  Journal open() { return {at(), bytes_}; }
  bool is_guard_intact() {
    return std::all_of(end(), end() + sizeof(Line), [](std::byte byte) { return byte == kGuard; });
  }

 private:
  static constexpr std::byte kGuard{0xA5};
  struct alignas(protocol::kCacheLine) Line {
    std::byte bytes[protocol::kCacheLine];
  };
  std::byte* at() { return reinterpret_cast<std::byte*>(lines_.data()); }
  std::byte* end() { return at() + bytes_; }

  std::uint64_t bytes_;
  std::vector<Line> lines_;
};

}  // namespace capstan::ps
