// limits.cpp -- reads getrlimit, statvfs and /proc, and judges them.
#include "launch/doctor/limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "launch/doctor/adapters.hpp"

namespace capstan::launch::doctor {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kGiB = 1024 * kMiB;
/// Default of Linux since 5.16; enough for UCX without an adapter.
constexpr std::uint64_t kDefaultMemlock = 8 * kMiB;
/// A rank without connections uses 50 descriptors; the rest is for the program.
constexpr std::uint64_t kMinFiles = 60;
constexpr std::uint64_t kEnoughFiles = 200;

/// Content of a file without trailing newlines; "" if it cannot be read.
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::optional<std::uint64_t> number_of(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

std::uint64_t limit_of(rlim_t value) { return value == RLIM_INFINITY ? kUnlimited : value; }

/// The selected choice: "madvise" in "always [madvise] never"; "absent" if there is none.
std::string chosen(const std::string& choices) {
  const std::size_t open = choices.find('[');
  const std::size_t close = choices.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "absent";
  return choices.substr(open + 1, close - open - 1);
}

std::string count_text(std::uint64_t count) {
  return count == kUnlimited ? "unlimited" : fmt::format("{}", count);
}

}  // namespace

Finding judge_memlock(std::uint64_t bytes, bool has_adapter) {
  const std::string observed = fmt::format("locked memory (ulimit -l): {}", bytes_text(bytes));
  constexpr const char* kFix =
      "set ulimit -l unlimited; in Slurm LimitMEMLOCK=infinity for slurmd and "
      "PropagateResourceLimitsExcept=MEMLOCK";
  if (bytes == kUnlimited) return pass(observed);
  if (has_adapter) {
    return fail(
        observed + ", but the adapter registers all memory of a ps: \"ibv_reg_mr: Cannot allocate memory\"",
        kFix);
  }
  if (bytes < kDefaultMemlock) return warn(observed + "; enough only without an RDMA adapter", kFix);
  return pass(observed + "; enough without an RDMA adapter");
}

Finding judge_open_files(std::uint64_t soft, std::uint64_t hard, int ranks) {
  const std::string observed =
      fmt::format("open files: {} (ulimit -Sn), at most {} (-Hn); {} needed for {} {}", count_text(soft),
                  count_text(hard), kEnoughFiles + static_cast<std::uint64_t>(ranks), ranks,
                  ranks == 1 ? "rank" : "ranks");
  const auto connections = static_cast<std::uint64_t>(ranks);
  constexpr const char* kFix =
      "raise the hard limit: ulimit -Hn, /etc/security/limits.conf, LimitNOFILE of slurmd";
  if (hard < kMinFiles + connections) return fail(observed, kFix);
  if (hard < kEnoughFiles + connections) return warn(observed, kFix);
  return pass(observed);
}

Finding judge_shared_memory(const std::optional<Space>& space) {
  constexpr const char* kFix =
      "mount -o remount,size=50% /dev/shm; for a container --shm-size=8g or --ipc host";
  if (!space) return fail("/dev/shm is missing, but MPI and UCX need it for shared memory", kFix);
  const std::string observed =
      fmt::format("/dev/shm: {}, {} free", bytes_text(space->bytes), bytes_text(space->free));
  if (space->free < 16 * kMiB) return fail(observed + ": a process that writes more gets SIGBUS", kFix);
  if (space->free < kGiB) return warn(observed, kFix);
  Finding finding = pass(observed);
  finding.group_key = fmt::format("/dev/shm: {}", bytes_text(space->bytes));
  return finding;
}

Finding judge_sysv(const SysvLimits& limits) {
  const std::uint64_t all =
      limits.all_pages >= kUnlimited / (4 * kKiB) ? kUnlimited : limits.all_pages * 4 * kKiB;
  // The default of the kernel is slightly below the maximum of uint64_t.
  const auto shown = [](std::uint64_t bytes) { return bytes_text(bytes >> 62 != 0 ? kUnlimited : bytes); };
  const std::string observed = fmt::format(
      "SysV shared memory: {} per segment (shmmax), {} in total (shmall), {} of {} "
      "segments used (shmmni)",
      shown(limits.segment_bytes), shown(all), limits.segments_used, count_text(limits.segments));
  if (limits.segments_used >= limits.segments)
    return fail(observed,
                "list owners with ipcs -m, remove leftovers with ipcrm, or raise sysctl kernel.shmmni");
  const std::uint64_t smallest = std::min(limits.segment_bytes, all);
  constexpr const char* kFix =
      "raise sysctl kernel.shmmax and kernel.shmall: a ps allocates few large segments";
  if (smallest < 64 * kMiB) return fail(observed, kFix);
  if (smallest < kGiB) return warn(observed, kFix);
  if (limits.segments - limits.segments_used < limits.segments / 10)
    return warn(observed, "list owners with ipcs -m and remove leftovers with ipcrm");
  Finding finding = pass(observed);
  finding.group_key = fmt::format("{} {} {}", limits.segment_bytes, all, limits.segments);
  return finding;
}

Finding judge_huge_pages(const std::string& enabled, const std::string& shmem_enabled,
                         std::uint64_t reserved) {
  const std::string shared = chosen(shmem_enabled);
  const std::string observed =
      fmt::format("transparent huge pages: {}, for shared memory: {}; {} huge pages reserved",
                  chosen(enabled), shared, reserved);
  if (shared == "absent" || shared == "never" || shared == "deny") {
    return warn(observed + ": random row accesses cause more TLB misses",
                "as root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled");
  }
  return pass(observed);
}

Finding judge_ptrace(std::optional<int> scope) {
  if (!scope) return pass("kernel.yama.ptrace_scope: absent, so processes of one user can use CMA");
  const std::string observed = fmt::format("kernel.yama.ptrace_scope: {}", *scope);
  if (*scope == 0) return pass(observed);
  return warn(observed + ": MPI and UCX silently fall back from CMA; the windows of Capstan do not need it",
              "as root: sysctl kernel.yama.ptrace_scope=0; for a container --cap-add SYS_PTRACE");
}

Finding check_memlock(const Request&) {
  rlimit limit{};
  (void)getrlimit(RLIMIT_MEMLOCK, &limit);  // cannot fail for a resource that exists
  return judge_memlock(limit_of(limit.rlim_cur), !read_adapters("/sys").empty());
}

Finding check_open_files(const Request&) {
  rlimit limit{};
  (void)getrlimit(RLIMIT_NOFILE, &limit);  // as above
  return judge_open_files(limit_of(limit.rlim_cur), limit_of(limit.rlim_max),
                          cluster::launched_ranks().value_or(1));
}

Finding check_shared_memory(const Request&) {
  struct statvfs found {};
  if (statvfs("/dev/shm", &found) != 0) return judge_shared_memory(std::nullopt);
  return judge_shared_memory(Space{found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize});
}

Finding check_sysv(const Request&) {
  SysvLimits limits;
  limits.segment_bytes = number_of("/proc/sys/kernel/shmmax").value_or(kUnlimited);
  limits.all_pages = number_of("/proc/sys/kernel/shmall").value_or(kUnlimited);
  limits.segments = number_of("/proc/sys/kernel/shmmni").value_or(kUnlimited);
  const std::string table = text_of("/proc/sysvipc/shm");  // the first line is a header
  limits.segments_used = static_cast<std::uint64_t>(std::count(table.begin(), table.end(), '\n'));
  return judge_sysv(limits);
}

Finding check_huge_pages(const Request&) {
  const std::string directory = "/sys/kernel/mm/transparent_hugepage/";
  const std::string memory = text_of("/proc/meminfo");
  const std::string label = "HugePages_Total:";
  const std::size_t at = memory.find(label);
  const std::uint64_t reserved = at == std::string::npos ? 0 : std::stoull(memory.substr(at + label.size()));
  return judge_huge_pages(text_of(directory + "enabled"), text_of(directory + "shmem_enabled"), reserved);
}

Finding check_ptrace(const Request&) {
  const auto scope = number_of("/proc/sys/kernel/yama/ptrace_scope");
  return judge_ptrace(scope ? std::optional(static_cast<int>(*scope)) : std::nullopt);
}

}  // namespace capstan::launch::doctor
