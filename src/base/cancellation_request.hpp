// cancellation_request.hpp -- the request that the function of a closure stops, seen by the threads that run
// it.
#pragma once

#include <atomic>
#include <stop_token>

namespace capstan {

/// Of one function. Any thread requests, in two steps, so that it may hold a lock during the first.
class CancellationRequest {
 public:
  bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
  void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
  /// Runs the callbacks of CancellationCallback, and from now on in their constructors.
  void run_callbacks() noexcept { callbacks_.request_stop(); }
  std::stop_token callbacks() const noexcept { return callbacks_.get_token(); }

 private:
  std::atomic<bool> requested_{false};
  std::stop_source callbacks_;
};

/// What cancelled() looks at on the calling thread; null: always false.
const CancellationRequest* current_cancellation() noexcept;

/// While it lives, the calling thread runs a function with that request; null: one that cannot be cancelled,
/// as for cleaning up.
class CancellationScope {
 public:
  explicit CancellationScope(const CancellationRequest* request) noexcept;
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  const CancellationRequest* before_;
};

}  // namespace capstan
