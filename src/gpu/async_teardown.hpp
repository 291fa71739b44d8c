// async_teardown.hpp -- releases GPU resources on detached threads, since the release may hang.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace capstan::gpu {

/// Returns "GPU 1" or "GPUs 0, 1".
std::string gpu_list(const std::vector<int>& devices);

/// How long callers wait for a teardown. NCCL needs well under a second to abort a call whose kernels still
/// run.
inline constexpr std::chrono::seconds kTeardownTimeout{20};

/// Thread-safe.
class AsyncTeardown {
 public:
  AsyncTeardown();

  /// Calls `teardown`, which must not throw, on a new thread. If no thread can be started, `teardown` is not
  /// called and counts as unfinished.
  void begin(int device, std::function<void()> teardown) noexcept;
  /// Waits for all teardowns of these devices, up to `timeout`. Returns the devices that still have an
  /// unfinished one, in ascending order.
  std::vector<int> unfinished(std::span<const int> devices, std::chrono::milliseconds timeout) const;
  /// Throws Error(failed_precondition), which names the devices, if unfinished() returns any.
  void require_finished(std::span<const int> devices, std::chrono::milliseconds timeout) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the threads, which may outlive this object
};

/// The instance of this process; never destroyed.
AsyncTeardown& async_teardown();

}  // namespace capstan::gpu
