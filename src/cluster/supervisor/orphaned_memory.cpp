// orphaned_memory.cpp -- a lease tells whether anybody uses a file.
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
/// A file's times are those of a clock that ticks more slowly.
constexpr std::chrono::seconds kTick{1};
/// For a turn to look: on a busy host one that looks may wait for a processor for a tenth of a second, and a
/// launcher that ends a job kills what is left of it after a second.
constexpr std::chrono::milliseconds kTurn{500};

bool is_younger(time_t made, std::chrono::system_clock::time_point since) {
  return std::chrono::system_clock::from_time_t(made) + kTick >= since;
}

/// One that is empty holds no memory, and its maker may be about to open it.
bool is_own_segment(int file, std::chrono::system_clock::time_point since) {
  struct stat segment {};
  if (::fstat(file, &segment) != 0 || !S_ISREG(segment.st_mode)) return false;
  return segment.st_uid == ::geteuid() && segment.st_size > 0 && is_younger(segment.st_ctim.tv_sec, since);
}

/// Whoever opens the file while it is leased has this process told by a signal: one that does nothing.
bool is_used_by_nobody_else(int file) {
  return ::fcntl(file, F_SETSIG, SIGURG) == 0 && ::fcntl(file, F_SETLEASE, F_WRLCK) == 0;
}

bool removed(const fs::path& path, std::chrono::system_clock::time_point since) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file && is_own_segment(file.get(), since) && is_used_by_nobody_else(file.get()) &&
         ::unlink(path.c_str()) == 0;
}

/// The ranks of a job that ends look at the same moment. One has a file open while another asks for the
/// lease: each would take it for used. So they look one at a time, or all the same after a while.
class OneAtATime {
 public:
  explicit OneAtATime(const fs::path& folder)
      : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    const auto until = std::chrono::steady_clock::now() + kTurn;
    while (folder_ && ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 &&
           std::chrono::steady_clock::now() < until) {
      ::usleep(500);
    }
  }

 private:
  FileDescriptor folder_;
};

}  // namespace

int remove_orphaned_memory(std::chrono::system_clock::time_point since, const fs::path& folder) noexcept {
  int count = 0;
  try {
    const OneAtATime lock(folder);
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (at->path().filename().native().starts_with(kPrefix) && removed(at->path(), since)) ++count;
    }
  } catch (const std::exception&) {
    // No memory for a path: they stay until the host starts again.
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
