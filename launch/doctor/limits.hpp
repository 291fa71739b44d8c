// limits.hpp -- what the system allows a process: memory, files, shared memory, huge pages.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

Finding check_memlock(const Request& request);
Finding check_open_files(const Request& request);
Finding check_shared_memory(const Request& request);
Finding check_sysv(const Request& request);
Finding check_huge_pages(const Request& request);
Finding check_ptrace(const Request& request);

/// ulimit -l. An adapter locks all memory that it reads and writes.
Finding judge_memlock(std::uint64_t bytes, bool has_adapter);

/// ulimit -Sn, -Hn. `ranks` of the job: over TCP each may be a connection. Capstan raises the soft limit
/// itself.
Finding judge_open_files(std::uint64_t soft, std::uint64_t hard, int ranks);

/// /dev/shm; nothing where it is no file system of its own.
struct Space {
  std::uint64_t bytes = 0;
  std::uint64_t free = 0;
};
Finding judge_shared_memory(const std::optional<Space>& space);

/// kernel.shmmax in bytes, kernel.shmall in pages of 4 KiB, kernel.shmmni, and how many segments there are.
struct SysvLimits {
  std::uint64_t segment_bytes = kUnlimited;
  std::uint64_t all_pages = kUnlimited;
  std::uint64_t segments = kUnlimited;
  std::uint64_t segments_used = 0;
};
Finding judge_sysv(const SysvLimits& limits);

/// The files of /sys/kernel/mm/transparent_hugepage, as they are: "always [madvise] never"; empty where there
/// is none. `reserved`: HugePages_Total of /proc/meminfo.
Finding judge_huge_pages(const std::string& enabled, const std::string& shmem_enabled,
                         std::uint64_t reserved);

/// kernel.yama.ptrace_scope; nothing where the kernel has no Yama.
Finding judge_ptrace(std::optional<int> scope);

}  // namespace capstan::launch::doctor
