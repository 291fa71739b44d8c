// asleep.hpp -- waits until a thread of this process sleeps in the kernel, so that a test can then wake it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "support/poll.hpp"

namespace capstan {

/// Polls the state of the thread with this thread id; returns false if it does not sleep within kPollLimit.
inline bool wait_until_asleep(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  return poll_until([&path] {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');  // the name may contain spaces
    return name_end != std::string::npos && line.compare(name_end + 1, 2, " S") == 0;
  });
}

}  // namespace capstan
