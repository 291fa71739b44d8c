// directory_lock.cpp -- flock, and a line about the holder.
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

constexpr std::chrono::milliseconds kBetweenLooks{50};

using FileNumber = std::pair<dev_t, ino_t>;

/// flock knows nothing of processes: two descriptors of one process would keep each other out.
struct OfThisProcess {
  std::mutex mutex;
  std::map<FileNumber, std::weak_ptr<const DirectoryLock>> locks;
};
OfThisProcess& of_this_process() {
  static OfThisProcess all;
  return all;
}

FileDescriptor open_lock_file(const std::filesystem::path& file) {
  FileDescriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd) throw file_failed("open", file, errno);
  return fd;
}

/// The holder writes its name into the file, so it must be no other file under a second name.
FileNumber number_of(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw file_failed("look at", path, errno);
  if (!S_ISREG(status.st_mode) || status.st_nlink > 1) {
    throw Error(Code::permission_denied, fmt::format("{} has {} names, expected a file with one; remove it",
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
  return line.empty() ? "a process that has not said which" : line;
}

/// False where another one has it. Throws where the file system cannot say.
bool try_lock(const FileDescriptor& file, const std::filesystem::path& path) {
  int failed = 0;
  do {
    failed = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  } while (failed == EINTR);
  if (failed == EWOULDBLOCK) return false;
  if (failed != 0) {
    log::warn("{} cannot be locked ({}): see to it that no other job writes checkpoints there", path.string(),
              file_failed("flock", path, failed).what());
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
  // Still locked: nobody reads an empty line of a holder that is there.
  if (::ftruncate(held_->file.get(), 0) != 0) log::debug("{}: cannot be emptied", held_->path.string());
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
      fmt::format("{} was removed or replaced while a checkpoint was written there, expected the folder "
                  "that this process has locked; nothing was published: save again",
                  held_->path.parent_path().string()));
}

std::shared_ptr<const DirectoryLock> DirectoryLock::take(const std::filesystem::path& folder,
                                                         std::chrono::milliseconds timeout) {
  const auto path = folder / kFile;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  OfThisProcess& all = of_this_process();
  const std::lock_guard guard(all.mutex);
  FileDescriptor file = open_lock_file(path);
  std::weak_ptr<const DirectoryLock>& mine = all.locks[number_of(file, path)];
  if (auto shared = mine.lock()) return shared;
  while (!try_lock(file, path)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Error(
          Code::failed_precondition,
          fmt::format(
              "another job writes checkpoints to {}: {}; wait until it has ended, or give another folder",
              folder.string(), holder(file)));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  const std::string line = this_process();
  if (::ftruncate(file.get(), 0) != 0 ||
      ::pwrite(file.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    throw file_failed("write", path, errno);
  }
  std::shared_ptr<const DirectoryLock> lock(
      new DirectoryLock(std::make_unique<Held>(Held{path, std::move(file)})));
  mine = lock;
  return lock;
}

}  // namespace capstan::io
