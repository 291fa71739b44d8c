// directory_lock.cpp -- flock, and a line that names the holder.
#include "io/directory_lock.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "io/file.hpp"

namespace capstan::io {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};

using FileId = std::pair<dev_t, ino_t>;

/// flock locks belong to open file descriptions, not processes: two descriptors of one process would exclude
/// each other.
struct ProcessLocks {
  std::mutex mutex;
  std::map<FileId, std::weak_ptr<const DirectoryLock>> locks;
};
ProcessLocks& process_locks() {
  static ProcessLocks all;
  return all;
}

FileDescriptor open_lock_file(const std::filesystem::path& file) {
  FileDescriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd) throw file_failed("open", file, errno);
  return fd;
}

/// Rejects a hard link: the holder writes to the file, which must not be another file under a second name.
FileId id_of(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw file_failed("stat", path, errno);
  if (!S_ISREG(status.st_mode) || status.st_nlink > 1) {
    throw Error(Code::permission_denied,
                fmt::format("{} is not a regular file, or has {} hard links, expected one; remove it",
                            path.string(), status.st_nlink));
  }
  return {status.st_dev, status.st_ino};
}

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("process {} on {} since {:%Y-%m-%d %H:%M:%S} UTC\n", ::getpid(), host.data(),
                     fmt::gmtime(std::time(nullptr)));
}

std::string holder(const FileDescriptor& file) {
  std::array<char, 512> text{};
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  std::string line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  line = line.substr(0, line.find('\n'));
  return line.empty() ? "an unknown process" : line;
}

/// Returns false if another process holds the lock. Returns true with a warning if flock fails.
bool try_lock(const FileDescriptor& file, const std::filesystem::path& path) {
  int failed = 0;
  do {
    failed = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  } while (failed == EINTR);
  if (failed == EWOULDBLOCK) return false;
  if (failed != 0) {
    log::warn("{}; make sure that no other job writes checkpoints there",
              file_failed("lock", path, failed).what());
  }
  return true;
}

}  // namespace

struct DirectoryLock::Held {
  std::filesystem::path path;
  FileDescriptor file;
};

DirectoryLock::DirectoryLock(std::unique_ptr<Held> held) : held_(std::move(held)) {}

DirectoryLock::~DirectoryLock() {
  // Truncates before the lock is released, so that the next holder's line is never truncated.
  if (::ftruncate(held_->file.get(), 0) != 0) log::debug("cannot truncate {}", held_->path.string());
}

bool DirectoryLock::is_current() const {
  struct stat held {
  }, there{};
  return ::fstat(held_->file.get(), &held) == 0 && ::lstat(held_->path.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

void DirectoryLock::require_current() const {
  if (is_current()) return;
  throw Error(
      Code::failed_precondition,
      fmt::format("{} was removed or replaced while a checkpoint was written there, expected the directory "
                  "that this process locked; nothing was published: save again",
                  held_->path.parent_path().string()));
}

std::shared_ptr<const DirectoryLock> DirectoryLock::take(const std::filesystem::path& directory,
                                                         std::chrono::milliseconds timeout) {
  const auto path = directory / kFile;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  ProcessLocks& all = process_locks();
  const std::lock_guard guard(all.mutex);
  FileDescriptor file = open_lock_file(path);
  std::weak_ptr<const DirectoryLock>& entry = all.locks[id_of(file, path)];
  if (auto shared = entry.lock()) return shared;
  while (!try_lock(file, path)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Error(
          Code::failed_precondition,
          fmt::format(
              "another job writes checkpoints to {}: {}; wait until it exits, or choose another directory",
              directory.string(), holder(file)));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  const std::string line = this_process();
  if (::ftruncate(file.get(), 0) != 0 ||
      ::pwrite(file.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    throw file_failed("write", path, errno);
  }
  std::shared_ptr<const DirectoryLock> lock(
      new DirectoryLock(std::make_unique<Held>(Held{path, std::move(file)})));
  entry = lock;
  return lock;
}

}  // namespace capstan::io
