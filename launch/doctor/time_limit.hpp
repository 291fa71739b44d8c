// time_limit.hpp -- what may never return gets a thread, or a process, and only so much time.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

/// How another program ended.
struct ProgramEnd {
  bool timed_out = false;  ///< it was killed
  int exit_code = -1;      ///< 128 plus the signal, as a shell counts; 127 when there is no such program
  std::string output;      ///< standard output and standard error together, 1 MiB at most
};

/// Runs `words` with `changes` made to the environment ("NAME=value" sets, "NAME" removes), standard input
/// empty. Any thread. Throws Error(internal) when no process can be made.
ProgramEnd run_program(const std::vector<std::string>& words, const std::vector<std::string>& changes,
                       std::chrono::milliseconds limit);

}  // namespace capstan::launch::doctor
