// open_to_append.cpp -- openat with O_NOFOLLOW, and checks of an existing file.
#include "base/open_to_append.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace capstan {
namespace {

constexpr int kFlags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
constexpr int kDirectory = O_PATH | O_DIRECTORY | O_CLOEXEC;

bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0; }

int open_directory(const std::string& path) {
  (void)::mkdir(path.c_str(), 0700);  // if it fails, open reports the reason
  const int directory = ::open(path.c_str(), kDirectory | O_NOFOLLOW);
  if (directory >= 0 || errno != ENOTDIR) return directory;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return -1;
  if (S_ISLNK(status.st_mode) && is_trusted(status.st_uid)) return ::open(path.c_str(), kDirectory);
  errno = S_ISLNK(status.st_mode) ? ELOOP : ENOTDIR;
  return -1;
}

/// Rejects hard links, which may alias another file of this user, and pipes or devices of other users.
bool is_trusted_file(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  const bool has_one_name = !S_ISREG(status.st_mode) || status.st_nlink == 1;
  if (is_trusted(status.st_uid) && has_one_name) return true;
  errno = EPERM;
  return false;
}

void close_keeping_errno(int fd) {
  const int error = errno;
  (void)::close(fd);
  errno = error;
}

int open_in(int directory, const char* name) {
  const int created = ::openat(directory, name, kFlags | O_CREAT | O_EXCL, 0600);
  if (created >= 0 || errno != EEXIST) return created;
  const int file =
      ::openat(directory, name, kFlags | O_NONBLOCK);  // fails with ENXIO for a pipe without a reader
  if (file < 0 || is_trusted_file(file)) return file;
  close_keeping_errno(file);
  return -1;
}

}  // namespace

int open_to_append(const std::filesystem::path& path) noexcept {
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  const int directory = open_directory(parent);
  if (directory < 0) return -1;
  const int file = open_in(directory, path.filename().c_str());
  close_keeping_errno(directory);
  return file;
}

}  // namespace capstan
