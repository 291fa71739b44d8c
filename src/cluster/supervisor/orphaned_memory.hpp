// orphaned_memory.hpp -- removes shared memory that killed processes left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

namespace capstan::cluster {

/// UCX gives a segment a name, fills it, and takes the name away again (UCX_POSIX_USE_PROC_LINK): who is
/// killed in those milliseconds leaves it behind. Removes those of this user that were made since then and
/// that no process has open or maps, in whatever container it is: Linux gives a write lease, fcntl(2), for
/// nothing else. Where it does not say so, they stay. Waits at most 0.1 s, for other processes that are in
/// this function. Returns how many were removed.
int remove_orphaned_memory(std::chrono::system_clock::time_point since,
                           const std::filesystem::path& folder = "/dev/shm") noexcept;

/// Removes the System V segments that a process with the pid `creator` made for this user since then and that
/// no process has attached. UCX marks each of its segments for removal right after attaching it; a process
/// that is killed in between leaves it behind. REQUIRES: `creator` has died. Never waits. Returns the number
/// of removed segments.
int remove_orphaned_segments(pid_t creator, std::chrono::system_clock::time_point since) noexcept;

}  // namespace capstan::cluster
