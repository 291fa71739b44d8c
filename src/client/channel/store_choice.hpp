// store_choice.hpp -- chooses ordinary or non-temporal stores for the entries of a mapped ring.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace capstan::client {

/// Ordinary stores are best if the cores of pusher and ps share a cache, through which entries then travel.
/// Between distant cores, each ordinary store waits until the ps's core releases the cache line. Non-temporal
/// stores do not wait, but the ps reads the entry from memory (docs/performance.md#near-and-distant-cores).
///
/// The better kind may change when a process migrates, and a virtual machine hides the placement of its CPUs.
/// So both are measured: of kPeriod large entries, the last ones use the other kind, and their best time per
/// byte is compared with that of the entries before them. Not thread-safe.
class StoreChoice {
 public:
  using Duration = std::chrono::duration<double>;

  /// Large entries per comparison; odd, so that it meets every entry of a program that repeats a few. Between
  /// distant cores, a comparison costs the time of about ten entries.
  static constexpr std::uint64_t kPeriod = 257;
  /// Entries that are timed with each kind of store. Two, as a thread may lose its core during one.
  static constexpr std::uint64_t kSamples = 2;
  /// Large entries in the first period: more than fit a ring of 1 MiB, whose pages are not mapped at first.
  static constexpr std::uint64_t kFirst = 131;
  /// Smaller entries use ordinary stores, since their times vary too much.
  static constexpr std::uint64_t kLargeBytes = 8192;
  /// Ordinary stores may take this many times as long. They took 1.5 to 3 times as long between near cores,
  /// where they are better, and 9 to 12 times between distant ones.
  static constexpr double kRatio = 4;

  /// Calls `write(streaming)` to write an entry of `bytes` bytes with the chosen stores, and measures it if a
  /// comparison needs that. `write` must be able to stream.
  template <class Write>
  void write(std::uint64_t bytes, const Write& write) {
    if (bytes < kLargeBytes) return write(false);
    if (left_ > 2 * kSamples) {
      --left_;
      return write(streaming_);
    }
    const auto begin = Clock::now();
    write(streams());
    note(bytes, Clock::now() - begin);
  }

  /// Returns true if the next large entry is to be written by non-temporal stores.
  bool streams() const noexcept { return streaming_ != (left_ <= kSamples); }
  /// Records the time of a large entry that was written by the stores that streams() returned.
  void note(std::uint64_t bytes, Duration time) noexcept {
    double& best = left_ <= kSamples ? other_ : chosen_;
    if (left_ <= 2 * kSamples) best = std::min(best, time.count() / static_cast<double>(bytes));
    if (--left_ != 0) return;
    const double ordinary = streaming_ ? other_ : chosen_;
    const double streamed = streaming_ ? chosen_ : other_;
    streaming_ = ordinary > kRatio * streamed;
    chosen_ = other_ = kNone;
    left_ = kPeriod;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  bool streaming_ = false;
  std::uint64_t left_ = kFirst;  // large entries of the period
  // Least seconds per byte among the samples of this period, with the chosen and the other stores:
  double chosen_ = kNone;
  double other_ = kNone;
};

}  // namespace capstan::client
