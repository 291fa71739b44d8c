// thread_states.hpp -- what each thread of another process is doing, from outside: it may be stopped or hang.
#pragma once

#include <sys/types.h>

#include <string>

namespace capstan {

/// "NAME STATE" for each thread, with commas; "NAME STATE in system call NUMBER" where it is in one and the
/// system lets this process know. STATE is the letter of proc(5): R runs, S sleeps, D waits for a device, T
/// is stopped. Empty when the process is not there. Any thread.
std::string thread_states(pid_t process);

}  // namespace capstan
