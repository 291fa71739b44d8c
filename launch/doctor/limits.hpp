// limits.hpp -- checks of system limits: locked memory, open files, shared memory, huge pages, ptrace.
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

/// `bytes`: ulimit -l. An adapter locks all memory that it accesses.
Finding judge_memlock(std::uint64_t bytes, bool has_adapter);

/// `soft`, `hard`: ulimit -Sn and -Hn. `ranks`: size of the job, since each rank may need a TCP connection.
/// Capstan raises the soft limit itself.
Finding judge_open_files(std::uint64_t soft, std::uint64_t hard, int ranks);

/// Size and free bytes of /dev/shm.
struct Space {
  std::uint64_t bytes = 0;
  std::uint64_t free = 0;
};
/// `space`: nullopt if /dev/shm is missing.
Finding judge_shared_memory(const std::optional<Space>& space);

struct SysvLimits {
  std::uint64_t segment_bytes = kUnlimited;  ///< kernel.shmmax
  std::uint64_t all_pages = kUnlimited;      ///< kernel.shmall, in pages of 4 KiB
  std::uint64_t segments = kUnlimited;       ///< kernel.shmmni
  std::uint64_t segments_used = 0;           ///< existing segments
};
Finding judge_sysv(const SysvLimits& limits);

/// `enabled`, `shmem_enabled`: the files in /sys/kernel/mm/transparent_hugepage, such as "always [madvise]
/// never"; "" if missing. `reserved`: HugePages_Total in /proc/meminfo.
Finding judge_huge_pages(const std::string& enabled, const std::string& shmem_enabled,
                         std::uint64_t reserved);

/// `scope`: kernel.yama.ptrace_scope; nullopt if the kernel has no Yama.
Finding judge_ptrace(std::optional<int> scope);

}  // namespace capstan::launch::doctor
