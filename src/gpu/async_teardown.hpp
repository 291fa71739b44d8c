// async_teardown.hpp -- ends of what GPUs have that may take for ever, by threads that nobody has to wait
// for.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace capstan::gpu {

/// "GPU 1", "GPUs 0, 1".
std::string names_of_gpus(const std::vector<int>& devices);

/// How long others wait for an end. NCCL gives up a call whose kernels still run in well under a second.
inline constexpr std::chrono::seconds kEndTimeout{20};

/// Any thread.
class AsyncTeardown {
 public:
  AsyncTeardown();

  /// Calls `end`, which does not throw, by a thread of its own. Where none is to be had it is not called, and
  /// counts as one that does not end.
  void begin(int device, std::function<void()> end) noexcept;
  /// Until all that have been begun for these devices are through, or for so long. Those that have one that
  /// is not, in order.
  std::vector<int> unfinished(std::span<const int> devices, std::chrono::milliseconds timeout) const;
  /// The same. Throws Error(failed_precondition) that names them and says that the process has to go.
  void require_finished(std::span<const int> devices, std::chrono::milliseconds timeout) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the threads' as well, which may outlive this
};

/// Of this process.
AsyncTeardown& async_teardown();

}  // namespace capstan::gpu
