// process_memory.hpp -- what the kernel says that a process holds.
#pragma once

#include <cstdint>
#include <optional>

namespace capstan::perf {

/// Bytes in RAM now; `shared` is memory that other processes may map, whoever has touched it.
struct ProcessMemory {
  std::uint64_t anonymous = 0;
  std::uint64_t shared = 0;
  std::uint64_t files = 0;  // programs and libraries
};

/// Nothing where the kernel does not tell, or there is no such process.
std::optional<ProcessMemory> memory_of(std::int64_t pid);
/// File descriptors that a process has open.
std::uint64_t open_files(std::int64_t pid);
/// Since this process was started.
double seconds_since_start();

}  // namespace capstan::perf
