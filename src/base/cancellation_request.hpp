// cancellation_request.hpp -- a cancellation request, shared by the threads that run one closure.
#pragma once

#include <atomic>
#include <stop_token>

namespace capstan {

/// Requests the cancellation of one function. Thread-safe. Cancellation has two steps, because a caller may
/// hold a lock during request() but not during run_callbacks().
class CancellationRequest {
 public:
  bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
  void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
  /// Runs the registered CancellationCallbacks. Callbacks that are constructed later run at once.
  void run_callbacks() noexcept { callbacks_.request_stop(); }
  std::stop_token callbacks() const noexcept { return callbacks_.get_token(); }

 private:
  std::atomic<bool> requested_{false};
  std::stop_source callbacks_;
};

/// The request that cancelled() checks on the calling thread; null if the thread cannot be cancelled.
const CancellationRequest* current_cancellation() noexcept;

/// Sets the calling thread's cancellation request for the lifetime of this object. With null, the thread
/// cannot be cancelled, for example during cleanup. `request` must outlive this object.
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
