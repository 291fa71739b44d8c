// async_teardown.cpp -- threads that are let go, and how many of them each GPU has.
#include "gpu/async_teardown.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "capstan/error.hpp"

namespace capstan::gpu {

std::string names_of_gpus(const std::vector<int>& devices) {
  return fmt::format("GPU{} {}", devices.size() == 1 ? "" : "s", fmt::join(devices, ", "));
}

struct AsyncTeardown::State {
  std::mutex mutex;
  std::condition_variable one_less;
  std::multiset<int> devices;  // one for each end
};

AsyncTeardown::AsyncTeardown() : state_(std::make_shared<State>()) {}

void AsyncTeardown::begin(int device, std::function<void()> end) noexcept {
  try {
    {
      const std::lock_guard lock(state_->mutex);
      state_->devices.insert(device);
    }
    std::thread([device, end = std::move(end), state = state_] {
      end();
      const std::lock_guard lock(state->mutex);
      state->devices.erase(state->devices.find(device));
      state->one_less.notify_all();
    }).detach();
  } catch (const std::exception&) {  // whoever waits for it is told
  }
}

std::vector<int> AsyncTeardown::unfinished(std::span<const int> devices,
                                           std::chrono::milliseconds timeout) const {
  const std::set<int> asked(devices.begin(), devices.end());
  std::vector<int> left;
  std::unique_lock lock(state_->mutex);
  (void)state_->one_less.wait_for(lock, timeout, [&] {
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
  throw Error(Code::failed_precondition,
              fmt::format("{}: a group that was given up has not ended within {} ms, as a kernel of it still "
                          "runs; start this process again",
                          names_of_gpus(left), timeout.count()));
}

AsyncTeardown& async_teardown() {
  static auto* const made = new AsyncTeardown;  // threads may come to their end after all else of the process
  return *made;
}

}  // namespace capstan::gpu
