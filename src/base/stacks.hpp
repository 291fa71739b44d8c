// stacks.hpp -- prints the stacks of all threads of this process, for debugging a hang.
#pragma once

namespace capstan {

/// Writes the name and stack of each thread to stderr, between two marker lines. Interrupts each thread with
/// SIGURG, which is ignored otherwise, and waits up to a second for it. Thread-safe; calls are serialized.
void write_stacks();
/// Writes the stacks to a file descriptor.
void write_stacks(int descriptor);

}  // namespace capstan
