// first_touch.hpp -- checks available memory, then allocates pages by first touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan {

/// Bytes of memory that this host and this process's cgroup can still provide; the maximum of uint64 if
/// neither reports a limit.
std::uint64_t memory_left();

/// Returns the number of bytes that may still be allocated, less a reserve for other processes. Throws
/// Error(resource_exhausted) if that is less than `bytes`.
std::uint64_t check_memory_left(std::uint64_t bytes);

/// Zeroes memory that no thread has touched yet, so that its pages are allocated near the calling thread, as
/// huge pages where the system has them. Linux overcommits memory and kills a process once it runs out, so
/// this function checks the available memory before each piece. Throws Error(resource_exhausted); the caller
/// then frees the memory that was already touched.
void touch_first(std::span<std::byte> memory);

}  // namespace capstan
