// stacks.hpp -- what every thread of this process is doing, for a person who wonders why nothing happens.
#pragma once

namespace capstan {

/// Writes the stack of each thread to stderr, with its name, between two lines that say so. A thread is
/// interrupted by SIGURG, which is ignored at other times, and gets a second to answer. Any thread; one call
/// at a time does it.
void write_stacks();
/// The same to a file descriptor.
void write_stacks(int descriptor);

}  // namespace capstan
