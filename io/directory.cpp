// directory.cpp -- openat with O_NOFOLLOW, fstat, unlinkat.
#include "io/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

namespace capstan::io {
namespace {

/// A ps that is not yet notified of an aborted save may still create its file while this removes the tree.
constexpr int kMaxTries = 1000;
constexpr std::chrono::milliseconds kRetryInterval(1);

FileDescriptor open_below(int directory, const char* name, const std::filesystem::path& path) {
  const int fd = ::openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) return FileDescriptor(fd);
  const int failed = errno;
  struct stat status {};
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode)) {
    throw Error(Code::permission_denied,
                fmt::format("{} is a symbolic link, expected a directory; remove the link, or choose "
                            "another directory",
                            path.string()));
  }
  throw file_failed("open directory", path, failed);
}

bool is_dots(std::string_view name) { return name == "." || name == ".."; }

/// Returns false if another process added an entry meanwhile, so that the caller retries.
bool remove_tree(const FileDescriptor& directory, const std::string& name,
                 const std::filesystem::path& path) {
  const int fd = ::openat(directory.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return true;
  if (fd < 0) throw file_failed("remove", path, errno);
  const FileDescriptor below(fd);
  for (const std::string& entry : names_in(below, path)) remove_at(below, entry, path / entry);
  if (::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (errno == ENOTEMPTY || errno == EEXIST) return false;
  throw file_failed("remove", path, errno);
}

}  // namespace

FileDescriptor open_directory(const std::filesystem::path& path) {
  return open_below(AT_FDCWD, path.c_str(), path);
}

FileDescriptor open_directory(const FileDescriptor& directory, const std::string& name,
                              const std::filesystem::path& path) {
  return open_below(directory.get(), name.c_str(), path);
}

void check_writers(const FileDescriptor& directory, const std::filesystem::path& path, Writers writers) {
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) throw file_failed("stat", path, errno);
  const bool root_is_fine = writers == Writers::sticky_too && status.st_uid == 0;
  if (status.st_uid != ::geteuid() && !root_is_fine) {
    throw Error(Code::permission_denied,
                fmt::format("{} belongs to user {}, expected user {}{}; choose a directory of this user",
                            path.string(), status.st_uid, ::geteuid(),
                            writers == Writers::sticky_too ? " or root" : ""));
  }
  const bool sticky_is_fine = writers == Writers::sticky_too && (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky_is_fine) {
    throw Error(Code::permission_denied,
                fmt::format("{} has mode {:04o}, which lets other users replace its files; "
                            "run chmod go-w on it, or choose a directory of this user",
                            path.string(), status.st_mode & 07777U));
  }
}

std::vector<std::string> names_in(const FileDescriptor& directory, const std::filesystem::path& path) {
  FileDescriptor to_read(::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(to_read ? ::fdopendir(to_read.get()) : nullptr,
                                                   &::closedir);
  if (!stream) throw file_failed("list", path, errno);
  (void)to_read.release();
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) throw file_failed("list", path, errno);
    if (entry == nullptr) return names;
    if (!is_dots(entry->d_name)) names.emplace_back(entry->d_name);
  }
}

void remove_at(const FileDescriptor& directory, const std::string& name, const std::filesystem::path& path) {
  if (::unlinkat(directory.get(), name.c_str(), 0) == 0 || errno == ENOENT) return;
  const int failed = errno;
  struct stat status {};
  const bool is_directory =
      ::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
  if (!is_directory) throw file_failed("remove", path, failed);
  for (int i = 0; i < kMaxTries; ++i) {
    if (remove_tree(directory, name, path)) return;
    std::this_thread::sleep_for(kRetryInterval);
  }
  throw file_failed("remove", path, ENOTEMPTY);
}

}  // namespace capstan::io
