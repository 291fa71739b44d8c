// traffic.hpp -- what a rank has pulled and pushed and how long that took, counted by one thread and read by
// another.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace capstan::cluster {

/// Times in buckets that are a quarter of a power of two wide, from 4 ns to 17 s: a quantile is at most a
/// quarter too high.
struct Times {
  static constexpr std::size_t kBuckets = 128;
  static constexpr std::size_t bucket_of(std::uint64_t nanoseconds) noexcept {
    if (nanoseconds < 4) return 0;
    const auto above = static_cast<std::size_t>(std::bit_width(nanoseconds)) - 3;
    const std::size_t bucket = 4 * above + ((nanoseconds >> above) & 3);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  /// In seconds: all times of the bucket are below it, but for those of the last one.
  static constexpr double bound(std::size_t bucket) noexcept {
    return static_cast<double>((5 + bucket % 4) << (bucket / 4)) * 1e-9;
  }

  std::array<std::uint64_t, kBuckets> counts{};

  std::uint64_t count() const noexcept;
  void add(const Times& other) noexcept;
  /// What has been added since; `earlier` was a part of it.
  Times since(const Times& earlier) const noexcept;
  /// The bound below which this part of the times lies, in seconds; 0 when there are none.
  double quantile(double part) const noexcept;
};

/// Of one kind of call.
struct CallMetrics {
  std::uint64_t calls = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  Times times = {};  // of some calls

  void add(const CallMetrics& other) noexcept;
  CallMetrics since(const CallMetrics& earlier) const noexcept;
};

struct TrafficMetrics {
  CallMetrics pull;   // lookups and pulls; times: of those that wait
  CallMetrics push;   // gradients; times: until the caller may reuse them
  CallMetrics flush;  // waits for what has been pushed to be applied; rows and bytes are 0

  void add(const TrafficMetrics& other) noexcept;
};

/// As it travels: most of a Times is zeros.
struct PackedCalls {
  std::uint64_t calls = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> times = {};  // bucket, count
};
PackedCalls packed(const CallMetrics& figures);
CallMetrics unpacked(const PackedCalls& packed);

/// Written by one thread at a time, without a locked instruction; any thread reads it. The clock is asked for
/// one call in 127, a prime, so that in a step of many calls each has its turn: two nanoseconds a call in
/// all.
class Traffic {
 public:
  class Calls {
   public:
    void count(std::uint64_t rows, std::uint64_t bytes) noexcept {
      bump(calls_, 1);
      bump(rows_, rows);
      bump(bytes_, bytes);
    }
    CallMetrics figures() const noexcept;

   private:
    friend class Traffic;
    static constexpr std::uint32_t kOneIn = 127;
    static void bump(std::atomic<std::uint64_t>& counter, std::uint64_t by) noexcept {
      counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
    bool due() noexcept {
      if (--left_ != 0) return false;
      left_ = kOneIn;
      return true;
    }
    void add_time(std::uint64_t nanoseconds) noexcept { bump(times_[Times::bucket_of(nanoseconds)], 1); }

    std::atomic<std::uint64_t> calls_{0};
    std::atomic<std::uint64_t> rows_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::uint32_t left_ = 2;  // the first call finds nothing connected
    std::array<std::atomic<std::uint64_t>, Times::kBuckets> times_{};
  };

  /// Times the call that it lives in, if it is that one's turn.
  class Timed {
   public:
    using Clock = std::chrono::steady_clock;
    explicit Timed(Calls& calls) noexcept : calls_(calls.due() ? &calls : nullptr) {
      if (calls_ != nullptr) begin_ = Clock::now();
    }
    ~Timed() {
      if (calls_ != nullptr)
        calls_->add_time(static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - begin_).count()));
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    Calls* calls_;
    Clock::time_point begin_{};
  };

  TrafficMetrics figures() const noexcept { return {pull.figures(), push.figures(), flush.figures()}; }

  Calls pull;
  Calls push;
  Calls flush;
};

/// What the process has used.
struct ProcessUse {
  double cpu_seconds = 0;  // of all its threads
  std::uint64_t peak_rss_bytes = 0;
};
ProcessUse use_of_this_process() noexcept;

}  // namespace capstan::cluster
