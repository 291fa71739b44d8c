// thread_states.hpp -- describes what each thread of another process is doing, for example one that hangs.
#pragma once

#include <sys/types.h>

#include <string>

namespace capstan {

/// Returns "NAME STATE" for each thread, separated by commas, or "NAME STATE in system call NUMBER" if the
/// kernel reveals the call. STATE is the letter of proc(5): R running, S sleeping, D in uninterruptible
/// sleep, T stopped. Empty if the process does not exist. Any thread.
std::string thread_states(pid_t process);

}  // namespace capstan
