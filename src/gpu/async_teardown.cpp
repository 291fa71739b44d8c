// async_teardown.cpp -- detached threads, and how many of them each GPU has.
#include "gpu/async_teardown.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "capstan/error.hpp"

namespace capstan::gpu {

std::string gpu_list(const std::vector<int>& devices) {
  return fmt::format("GPU{} {}", devices.size() == 1 ? "" : "s", fmt::join(devices, ", "));
}

struct AsyncTeardown::State {
  std::mutex mutex;
  std::condition_variable finished;
  std::multiset<int> devices;  // one entry for each unfinished teardown
};

AsyncTeardown::AsyncTeardown() : state_(std::make_shared<State>()) {}

void AsyncTeardown::begin(int device, std::function<void()> teardown) noexcept {
  try {
    {
      const std::lock_guard lock(state_->mutex);
      state_->devices.insert(device);
    }
    std::thread([device, teardown = std::move(teardown), state = state_] {
      teardown();
      const std::lock_guard lock(state->mutex);
      state->devices.erase(state->devices.find(device));
      state->finished.notify_all();
    }).detach();
  } catch (const std::exception&) {  // no thread started: the device stays in the set and is never finished
  }
}

std::vector<int> AsyncTeardown::unfinished(std::span<const int> devices,
                                           std::chrono::milliseconds timeout) const {
  const std::set<int> asked(devices.begin(), devices.end());
  std::vector<int> left;
  std::unique_lock lock(state_->mutex);
  (void)state_->finished.wait_for(lock, timeout, [&] {
    left.clear();
    for (const int device : asked) {
      if (state_->devices.contains(device)) left.push_back(device);
    }
    return left.empty();
  });
  return left;
}

void AsyncTeardown::require_finished(std::span<const int> devices, std::chrono::milliseconds timeout) const {
  const std::vector<int> left = unfinished(devices, timeout);
  if (left.empty()) return;
  throw Error(
      Code::failed_precondition,
      fmt::format("{}: an aborted NCCL communicator still runs a kernel after {} ms; restart this process",
                  gpu_list(left), timeout.count()));
}

AsyncTeardown& async_teardown() {
  static auto* const made = new AsyncTeardown;  // never destroyed: its threads may outlive static objects
  return *made;
}

}  // namespace capstan::gpu
