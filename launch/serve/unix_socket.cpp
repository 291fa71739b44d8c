// unix_socket.cpp -- a refused connection shows that no process listens.
#include "launch/serve/unix_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "capstan/error.hpp"
#include "io/file.hpp"

namespace capstan::launch::serve {
namespace {

/// A start holds the lock for milliseconds.
constexpr std::chrono::seconds kMaxLockWait{10};
constexpr std::chrono::milliseconds kLockPoll{20};

std::optional<struct stat> status_of(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return {};
  return found;
}

}  // namespace

FileDescriptor lock_directory_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  FileDescriptor lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto deadline = std::chrono::steady_clock::now() + kMaxLockWait;
  while (lock.get() >= 0 && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      lock.reset();
    } else if (std::chrono::steady_clock::now() > deadline) {
      throw Error(Code::deadline_exceeded,
                  fmt::format("--socket {}: another process has locked the directory {} for {} s; end it, or "
                              "name a socket in a directory of your own",
                              path, directory, kMaxLockWait.count()));
    } else {
      std::this_thread::sleep_for(kLockPoll);
    }
  }
  if (lock.get() < 0) {
    throw Error(io::code_of_errno(errno), fmt::format("--socket {}: cannot lock the directory {}: {}", path,
                                                      directory, std::strerror(errno)));
  }
  return lock;
}

void remove_stale_socket(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) {
    throw Error(Code::invalid_argument,
                fmt::format("--socket {}: found {} bytes, expected a path of at most {}", path, path.size(),
                            sizeof address.sun_path - 1));
  }
  const auto found = status_of(path);
  if (!found) return;
  if (!S_ISSOCK(found->st_mode)) {
    throw Error(Code::already_exists,
                fmt::format("--socket {}: the file exists and is no socket, expected another path", path));
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int connected = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (connected == 0 || errno != ECONNREFUSED) {
    throw Error(Code::already_exists,
                fmt::format("--socket {}: a process listens on it, expected another path", path));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw Error(Code::permission_denied,
                fmt::format("--socket {}: cannot remove the stale socket: {}", path, std::strerror(errno)));
  }
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  if (const auto found = status_of(path_)) {
    inode_ = found->st_ino;
    modified_ = found->st_mtim;
  }
}

SocketFile::~SocketFile() {
  FileDescriptor lock;  // or a start could replace the socket before it is removed
  try {
    lock = lock_directory_of(path_);
  } catch (const Error&) {
    return;  // the next start removes the stale socket
  }
  const auto found = status_of(path_);
  if (found && found->st_ino == inode_ && found->st_mtim.tv_sec == modified_.tv_sec &&
      found->st_mtim.tv_nsec == modified_.tv_nsec)
    (void)::unlink(path_.c_str());
}

}  // namespace capstan::launch::serve
