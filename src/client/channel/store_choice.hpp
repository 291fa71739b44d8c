// store_choice.hpp -- chooses ordinary or non-temporal stores for the entries of a mapped ring.
#pragma once

#include <chrono>
#include <cstdint>

namespace capstan::client {

/// Ordinary stores are best if the cores of the pusher and the ps share a cache, through which entries then
/// travel. Between other cores, such a store waits until the ps's core has given up the cache line. A
/// non-temporal store does not wait, and was 4.8 times as fast (docs/performance.md#distant-cores).
///
/// Which holds may change whenever a process migrates, and a virtual machine does not tell. So the choice
/// is measured: of kPeriod large entries, one is written in the other way, and its time is compared with
/// that of the entry before it. Not thread-safe.
class StoreChoice {
 public:
  using Duration = std::chrono::duration<double>;

  /// Large entries per comparison. A comparison costs the time of up to ten entries.
  static constexpr std::uint64_t kPeriod = 256;
  /// Large entries before the first comparison: more than a ring has, whose pages are not mapped at first.
  static constexpr std::uint64_t kFirst = 24;
  /// Smaller entries use ordinary stores: they matter for latency, and their times vary too much.
  static constexpr std::uint64_t kLargeBytes = 16384;
  /// Ordinary stores may take this many times as long. Within a common cache they took 2 times as long as
  /// non-temporal ones, whose cost is in reading the entry from memory; between distant cores 10 times.
  static constexpr double kRatio = 4;

  /// Calls `write(streaming)` to write an entry of `bytes` bytes, and measures it if it is due.
  template <class Write>
  void write(std::uint64_t bytes, const Write& write) {
    if (bytes < kLargeBytes) return write(false);
    if (!due()) return write(next());
    const auto begin = Clock::now();
    write(next());
    note(bytes, Clock::now() - begin);
  }

  /// Returns true if the next large entry is to be written by non-temporal stores.
  bool next() const noexcept { return streaming_ != (until_trial_ == 0); }
  /// Records the time of a large entry that was written as next() said.
  void note(std::uint64_t bytes, Duration time) noexcept {
    const double per_byte = time.count() / static_cast<double>(bytes);
    if (until_trial_ != 0) {
      chosen_ = per_byte;
      --until_trial_;
      return;
    }
    const double ordinary = streaming_ ? per_byte : chosen_;
    const double streamed = streaming_ ? chosen_ : per_byte;
    streaming_ = ordinary > kRatio * streamed;
    until_trial_ = kPeriod - 1;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Returns true if the next large entry is to be timed; counts it otherwise.
  bool due() noexcept {
    if (until_trial_ <= 1) return true;
    --until_trial_;
    return false;
  }

  bool streaming_ = false;
  std::uint64_t until_trial_ = kFirst;  // large entries before the one that is written in the other way
  double chosen_ = 0;                   // seconds per byte of the entry before that one
};

}  // namespace capstan::client
