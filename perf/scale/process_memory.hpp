// process_memory.hpp -- memory and file descriptors of a process, as the kernel reports them.
#pragma once

#include <cstdint>
#include <optional>

namespace capstan::perf {

/// Resident bytes; `shared` is memory that other processes may map, including pages that they touched.
struct ProcessMemory {
  std::uint64_t anonymous = 0;
  std::uint64_t shared = 0;
  std::uint64_t files = 0;  // mapped files: programs and libraries
};

/// Returns nullopt if there is no such process, or the kernel does not report its memory.
std::optional<ProcessMemory> memory_of(std::int64_t pid);
/// Returns the number of open file descriptors of a process; 0 if it cannot be read.
std::uint64_t open_files(std::int64_t pid);
/// Returns the seconds since the start of this process.
double seconds_since_start();

}  // namespace capstan::perf
