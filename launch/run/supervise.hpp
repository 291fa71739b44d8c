// supervise.hpp -- runs a job's launcher: signals, time-out, exit code, and nothing that stays behind.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launch/run/plan.hpp"

namespace capstan::launch::run {

struct Limits {
  std::optional<std::chrono::milliseconds> timeout = {};
  /// A job that has been told to end, by the time-out or by a signal, is killed after so long: the one by the
  /// time-out has been given its time.
  std::chrono::milliseconds after_timeout{10'000};
  std::chrono::milliseconds after_signal{60'000};
  /// What the launcher leaves on this host may end by itself for so long.
  std::chrono::milliseconds for_the_rest{3'000};
};

struct Outcome {
  /// The launcher's; 128 + signal; 124 after the time-out. Never 0 when a signal asked the job to end: then
  /// 128 + that signal.
  int exit_code = 0;
  std::chrono::milliseconds took{0};
  int left = 0;  ///< processes that the launcher had left on this host, and that were killed
};

/// Starts the command in a process group of its own, without a terminal as its input, and hands SIGTERM,
/// SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 on to it until it has ended. Every process of this host that descends
/// from it has ended on return. Dies this process, the launcher gets SIGTERM. Throws Error(not_found) when it
/// cannot be started. One thread; REQUIRES: the process has no other children.
Outcome supervise(const Plan& plan, const Limits& limits);

}  // namespace capstan::launch::run
