// traffic.hpp -- counts and durations of a rank's pulls and pushes, counted by one thread and read by others.
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

/// Histogram of durations. Buckets are a quarter of a power of two wide, from 4 ns to 17 s, so a quantile is
/// at most 25 % too high.
struct Times {
  static constexpr std::size_t kBuckets = 128;
  static constexpr std::size_t bucket_of(std::uint64_t nanoseconds) noexcept {
    if (nanoseconds < 4) return 0;
    const auto above = static_cast<std::size_t>(std::bit_width(nanoseconds)) - 3;
    const std::size_t bucket = 4 * above + ((nanoseconds >> above) & 3);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  /// Upper bound of a bucket in seconds; the last bucket also has all longer durations.
  static constexpr double bound(std::size_t bucket) noexcept {
    return static_cast<double>((5 + bucket % 4) << (bucket / 4)) * 1e-9;
  }

  std::array<std::uint64_t, kBuckets> counts{};

  std::uint64_t count() const noexcept;
  void add(const Times& other) noexcept;
  /// Returns the durations that were added after `earlier` was copied from this histogram.
  Times since(const Times& earlier) const noexcept;
  /// Returns the bound in seconds below which the fraction `part` of the durations lies; 0 if there are none.
  double quantile(double part) const noexcept;
};

/// Counts of one kind of call.
struct CallMetrics {
  std::uint64_t calls = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  Times times = {};  // of a sample of the calls

  void add(const CallMetrics& other) noexcept;
  CallMetrics since(const CallMetrics& earlier) const noexcept;
};

/// Number of keys of dynamic tables in lookups.
struct KeyCounts {
  std::uint64_t found = 0;
  std::uint64_t missing = 0;

  void add(const KeyCounts& other) noexcept {
    found += other.found;
    missing += other.missing;
  }
};

struct TrafficMetrics {
  CallMetrics pull;   // lookups and pulls; times: only of calls that block
  CallMetrics push;   // gradients; times: until the caller may reuse them
  CallMetrics flush;  // waits for pushes to be applied; rows and bytes are 0
  KeyCounts keys;     // only of lookups in mapped memory; a ps counts the others

  void add(const TrafficMetrics& other) noexcept;
};

/// Serialized form: most buckets of a Times are zero.
struct PackedCalls {
  std::uint64_t calls = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> times = {};  // bucket, count
};
PackedCalls packed(const CallMetrics& metrics);
CallMetrics unpacked(const PackedCalls& packed);

/// Written by one thread at a time, without locked instructions; any thread reads it. One call in 127 is
/// timed; a prime, so that each call of a repeated sequence is sampled. Costs about 2 ns per call.
class Traffic {
  static void bump(std::atomic<std::uint64_t>& counter, std::uint64_t by) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

 public:
  class Calls {
   public:
    void count(std::uint64_t rows, std::uint64_t bytes) noexcept {
      bump(calls_, 1);
      bump(rows_, rows);
      bump(bytes_, bytes);
    }
    CallMetrics metrics() const noexcept;

   private:
    friend class Traffic;
    static constexpr std::uint32_t kOneIn = 127;
    bool due() noexcept {
      if (--left_ != 0) return false;
      left_ = kOneIn;
      return true;
    }
    void add_time(std::uint64_t nanoseconds) noexcept { bump(times_[Times::bucket_of(nanoseconds)], 1); }

    std::atomic<std::uint64_t> calls_{0};
    std::atomic<std::uint64_t> rows_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::uint32_t left_ = 2;  // the first call also connects, so it is not timed
    std::array<std::atomic<std::uint64_t>, Times::kBuckets> times_{};
  };

  /// Times the call during which it exists, if that call is sampled.
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

  class Keys {
   public:
    void count(std::uint64_t found, std::uint64_t missing) noexcept {
      bump(found_, found);
      bump(missing_, missing);
    }
    KeyCounts metrics() const noexcept {
      return {found_.load(std::memory_order_relaxed), missing_.load(std::memory_order_relaxed)};
    }

   private:
    std::atomic<std::uint64_t> found_{0};
    std::atomic<std::uint64_t> missing_{0};
  };

  TrafficMetrics metrics() const noexcept {
    return {pull.metrics(), push.metrics(), flush.metrics(), keys.metrics()};
  }

  Calls pull;
  Calls push;
  Calls flush;
  Keys keys;
};

/// Resources that the process has used.
struct ProcessUse {
  double cpu_seconds = 0;  // of all its threads
  std::uint64_t peak_rss_bytes = 0;
};
ProcessUse use_of_this_process() noexcept;

}  // namespace capstan::cluster
