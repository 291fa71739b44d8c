// orphaned_memory.cpp -- a lease shows whether a process uses a file.
#include "cluster/supervisor/orphaned_memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <system_error>

#include "base/file_descriptor.hpp"

namespace capstan::cluster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ucx_shm_posix_";
/// Tolerance of comparisons: times of files are whole seconds, of a clock that is some milliseconds late.
constexpr std::chrono::seconds kTick{2};
/// Maximum wait for the lock of OneAtATime. On a busy host the process that holds it may wait 0.1 s for a
/// processor. A launcher that ends a job kills its processes after a second.
constexpr std::chrono::milliseconds kMaxLockWait{500};

bool is_younger(time_t made, std::chrono::system_clock::time_point since) {
  return std::chrono::system_clock::from_time_t(made) + kTick >= since;
}

/// Returns true for a file of this user that was created after `since`. Returns false for an empty file: it
/// holds no memory, and its creator may be about to open it.
bool is_own_recent_segment(int file, std::chrono::system_clock::time_point since) {
  struct stat segment {};
  if (::fstat(file, &segment) != 0 || !S_ISREG(segment.st_mode)) return false;
  return segment.st_uid == ::geteuid() && segment.st_size > 0 && is_younger(segment.st_ctim.tv_sec, since);
}

/// Takes a write lease, which the kernel grants only if no other process has the file open. If another
/// process opens the file later, the kernel signals this process: with SIGURG, which has no effect.
bool is_unused(int file) {
  return ::fcntl(file, F_SETSIG, SIGURG) == 0 && ::fcntl(file, F_SETLEASE, F_WRLCK) == 0;
}

/// Returns true if it removed the file.
bool remove_if_orphaned(const fs::path& path, std::chrono::system_clock::time_point since) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file && is_own_recent_segment(file.get(), since) && is_unused(file.get()) &&
         ::unlink(path.c_str()) == 0;
}

/// Locks the directory, or continues without the lock after kMaxLockWait. When a job ends, its agents on a
/// host remove memory at the same time. Without the lock, a file that one agent has open would look used to
/// the others.
class OneAtATime {
 public:
  explicit OneAtATime(const fs::path& directory)
      : directory_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    const auto until = std::chrono::steady_clock::now() + kMaxLockWait;
    while (directory_ && ::flock(directory_.get(), LOCK_EX | LOCK_NB) != 0 &&
           std::chrono::steady_clock::now() < until) {
      ::usleep(500);
    }
  }

 private:
  FileDescriptor directory_;
};

}  // namespace

int remove_orphaned_memory(std::chrono::system_clock::time_point since, const fs::path& directory) noexcept {
  int count = 0;
  try {
    const OneAtATime lock(directory);
    std::error_code error;
    for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
      if (at->path().filename().native().starts_with(kPrefix) && remove_if_orphaned(at->path(), since))
        ++count;
    }
  } catch (const std::exception&) {
    // Out of memory for a path: the segments stay until the host reboots.
  }
  return count;
}

int remove_orphaned_segments(pid_t creator, std::chrono::system_clock::time_point since) noexcept {
  int count = 0;
  shmid_ds segment{};
  // The kernel's table of segments, by index: shmctl(2), SHM_INFO and SHM_STAT.
  const int last = ::shmctl(0, SHM_INFO, &segment);
  for (int index = 0; index <= last; ++index) {
    const int id = ::shmctl(index, SHM_STAT, &segment);
    if (id < 0 || segment.shm_cpid != creator || segment.shm_nattch != 0) continue;
    if (segment.shm_perm.cuid != ::geteuid() || !is_younger(segment.shm_ctime, since)) continue;
    if (::shmctl(id, IPC_RMID, nullptr) == 0) ++count;
  }
  return count;
}

}  // namespace capstan::cluster
