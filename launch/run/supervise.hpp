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
  /// Sent to the job at the first SIGINT, so that it saves a checkpoint and exits; 0: none.
  int save_signal = 0;
  /// A batch system requeues a job that exits with 85, also after SIGINT.
  bool requeues = false;
  /// Grace period of processes that the launcher leaves on this host.
  std::chrono::milliseconds orphan_timeout{3'000};
};

struct Outcome {
  /// Exit code of the launcher; 128 + signal if a signal ended it; 124 after the timeout. After SIGINT 130,
  /// or 85 if the job saved a checkpoint and is requeued. After SIGTERM or SIGHUP, 0 becomes 128 + signal.
  int exit_code = 0;
  std::chrono::milliseconds took{0};
  int killed_orphans = 0;  ///< processes of this host that survived the launcher
};

/// Starts the command in a new process group, with /dev/null in place of a terminal as standard input, and
/// forwards SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 until it ends. If `save_signal` is set, the first
/// SIGINT is forwarded as that signal, and no SIGKILL follows. On return, no descendant of the command runs
/// on this host. If this process dies, the launcher receives SIGTERM. Throws Error: not_found or
/// permission_denied if the command cannot be started. REQUIRES: one thread, no other children.
Outcome supervise(const Plan& plan, const Limits& limits);

}  // namespace capstan::launch::run
