// time_limit.hpp -- runs a function that may hang, with a time limit.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace capstan::launch::doctor {

/// Runs `work` in a detached thread and returns its result; nullopt after `limit`. `work` then continues
/// until the process ends, so it must own everything that it uses. Rethrows exceptions of `work`.
template <class T>
std::optional<T> run_with_time_limit(std::chrono::milliseconds limit, std::function<T()> work) {
  std::packaged_task<T()> task(std::move(work));
  std::future<T> result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace capstan::launch::doctor
