// supervise.hpp -- supervises the launcher of a job: signals, timeout, exit code, orphaned processes.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launch/run/plan.hpp"

namespace capstan::launch::run {

struct Limits {
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Grace periods between SIGTERM and SIGKILL: after the timeout, and after a signal of the caller.
  std::chrono::milliseconds kill_after_timeout{10'000};
  std::chrono::milliseconds kill_after_signal{60'000};
  /// Grace period of processes that the launcher leaves on this host.
  std::chrono::milliseconds orphan_timeout{3'000};
};

struct Outcome {
  /// That of the launcher; 128 + signal if a signal ended it; 124 after the timeout. If SIGTERM, SIGINT or
  /// SIGHUP was forwarded, 128 + that signal replaces 0.
  int exit_code = 0;
  std::chrono::milliseconds took{0};
  int killed_orphans = 0;  ///< processes of this host that survived the launcher
};

/// Starts the command in a new process group, with /dev/null in place of a terminal as standard input, and
/// forwards SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 until it ends. On return no descendant of it runs on
/// this host. If this process dies, the launcher receives SIGTERM. Throws Error: not_found or
/// permission_denied if the command cannot be started. REQUIRES: one thread, no other children.
Outcome supervise(const Plan& plan, const Limits& limits);

}  // namespace capstan::launch::run
