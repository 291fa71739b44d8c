// orphaned_memory.hpp -- shared memory that UCX has left in /dev/shm.
#pragma once

#include <chrono>
#include <filesystem>

namespace capstan::cluster {

/// UCX gives a segment a name, fills it, and takes the name away again (UCX_POSIX_USE_PROC_LINK): who is
/// killed in those milliseconds leaves it behind. Removes those of this user that were made since then and
/// that no process has open or maps, in whatever container it is: Linux gives a write lease, fcntl(2), for
/// nothing else. Where it does not say so, they stay. Never waits. Returns how many were removed.
int remove_orphaned_memory(std::chrono::system_clock::time_point since,
                           const std::filesystem::path& folder = "/dev/shm") noexcept;

}  // namespace capstan::cluster
