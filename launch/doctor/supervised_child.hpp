// supervised_child.hpp -- runs work that may crash in a child process, and keeps its partial results.
//
// MPI_Init may end the process, UCX may crash, and a launcher ends all ranks when one dies. The parent
// survives and can still report the findings so far.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace capstan::launch::doctor {

/// Sends a partial result to the parent.
using SendReport = std::function<void(std::span<const std::byte>)>;

/// Exit status and partial results of the child.
struct ChildResult {
  int exit_code = 0;  ///< exit code, or 128 + signal
  /// True if this process received SIGTERM. A child that still ran was sent SIGKILL and not waited for.
  bool terminated = false;
  std::vector<std::vector<std::byte>> reports;  ///< one element per complete SendReport call
};

/// Forks and runs `work` in the child; `work` must end the process and not return. Returns in the parent once
/// the child has ended. SIGTERM stays blocked afterwards. REQUIRES: no other thread runs. Throws
/// Error(internal).
ChildResult run_in_child(const std::function<void(const SendReport&)>& work);

}  // namespace capstan::launch::doctor
