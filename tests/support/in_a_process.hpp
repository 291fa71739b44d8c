// in_a_process.hpp -- checks a condition in a child process, for code that changes its process permanently.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

namespace capstan {

/// Returns true if `holds` returns true in a child process. Prints its exception to standard error.
inline bool in_a_process(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(holds() ? 0 : 1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child process: %s\n", error.what());
      _exit(1);
    }
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace capstan
