// apply_threads.hpp -- threads that apply the parts of an update together with the thread of the ps.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace capstan::ps {

/// Runs a function once for each thread. The threads poll for a short time after a call, then sleep; to wake
/// them takes a system call. The caller takes the parts that no other thread has begun, so it never waits for
/// a thread that sleeps.
class ApplyThreads {
 public:
  /// `count` threads, of which the caller of `run` is one. Throws Error(resource_exhausted). REQUIRES:
  /// 1 <= count <= kMost.
  explicit ApplyThreads(int count);
  ~ApplyThreads();
  ApplyThreads(const ApplyThreads&) = delete;
  ApplyThreads& operator=(const ApplyThreads&) = delete;

  static constexpr int kMost = 16;

  int count() const noexcept { return count_; }
  /// Calls f(0), ..., f(count() - 1) on any of the threads, and returns when all calls have returned. Then
  /// throws an exception that one of them threw. One thread at a time may call this.
  void run(const std::function<void(int part)>& f);

 private:
  /// The next part to begin is in the lowest bits, the number of the call of `run` in the others.
  using Claim = std::uint64_t;
  static constexpr Claim kPartMask = 0xFF;

  /// Returns true if it has called the function for a part that no thread had begun.
  bool run_part();
  bool has_part() const noexcept { return part_of(claim_.load()) < count_; }
  static int part_of(Claim claim) noexcept { return static_cast<int>(claim & kPartMask); }
  void serve();
  void stop() noexcept;

  const int count_;
  std::atomic<Claim> claim_;
  std::atomic<int> returned_ = 0;  // calls of the function
  const std::function<void(int)>* function_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::atomic<int> sleeping_ = 0;
  std::atomic<std::uint32_t> wakes_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::jthread> threads_;  // last: they use the above
};

}  // namespace capstan::ps
