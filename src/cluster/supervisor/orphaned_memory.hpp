// orphaned_memory.hpp -- removes shared memory that killed processes left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

namespace capstan::cluster {

/// UCX creates a named segment, fills it, and unlinks the name (UCX_POSIX_USE_PROC_LINK); a process that is
/// killed in those milliseconds leaves the segment behind. Removes segments in `directory` that this user
/// created after `since` and that no process has open or maps, in any container: only then Linux grants a
/// write lease (fcntl(2)). Waits 0.5 s at most for other processes in this function. Returns the number of
/// removed segments.
int remove_orphaned_memory(std::chrono::system_clock::time_point since,
                           const std::filesystem::path& directory = "/dev/shm") noexcept;

/// Removes System V segments that the process `creator` created for this user after `since` and that no
/// process has attached. UCX marks each segment for removal right after it attaches it; a process that is
/// killed in between leaves it behind. REQUIRES: `creator` is dead. Never waits. Returns the number of
/// removed segments.
int remove_orphaned_segments(pid_t creator, std::chrono::system_clock::time_point since) noexcept;

}  // namespace capstan::cluster
