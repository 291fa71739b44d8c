// time_limit.hpp -- what may never return gets a thread, and only so much time.
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

/// The result of `work`, or nothing when it is not there in time: `work` then goes on in its thread until the
/// process ends, so it must own all that it uses. Rethrows what `work` throws.
template <class T>
std::optional<T> within(std::chrono::milliseconds limit, std::function<T()> work) {
  std::packaged_task<T()> task(std::move(work));
  std::future<T> result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace capstan::launch::doctor
