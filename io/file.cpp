// file.cpp -- open, pread, write, fsync and rename, with the checks that each needs.
#include "io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "base/file_size_signal.hpp"
#include "base/log.hpp"
#include "io/directory.hpp"

namespace capstan::io {
namespace {

/// Write-back is requested in chunks of this size.
constexpr std::uint64_t kWritebackBytes = std::uint64_t{8} << 20;

/// Never writes through a link, which another user may have planted.
FileDescriptor open_file(const std::filesystem::path& path, int flags, std::string_view operation) {
  const int no_follow = (flags & O_ACCMODE) == O_RDONLY ? 0 : O_NOFOLLOW;
  int fd;
  do {
    fd = ::open(path.c_str(), flags | no_follow | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw file_failed(operation, path, errno);
  return FileDescriptor(fd);
}

void sync_descriptor(const FileDescriptor& file, const std::filesystem::path& path) {
  if (::fsync(file.get()) != 0) throw file_failed("fsync", path, errno);
}

}  // namespace

Code code_of_errno(int error) noexcept {
  switch (error) {
    case ENOENT:
      return Code::not_found;
    case EISDIR:
    case ENOTDIR:
      return Code::invalid_argument;
    case EEXIST:
      return Code::already_exists;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:  // O_NOFOLLOW found a link
      return Code::permission_denied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::resource_exhausted;
    default:
      return Code::internal;
  }
}

Error file_failed(std::string_view operation, const std::filesystem::path& path, int error, Where where) {
  return Error(
      code_of_errno(error),
      fmt::format("cannot {} {}: {}", operation, path.string(), std::generic_category().message(error)),
      where);
}

FileDescriptor open_to_read(const std::filesystem::path& path) { return open_file(path, O_RDONLY, "open"); }

void read_at(const FileDescriptor& file, const std::filesystem::path& path, std::uint64_t offset, void* out,
             std::size_t bytes) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(file.get(), to, std::min(bytes, kMaxCallBytes), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EIO || errno == ESTALE)) {  // bad sector; NFS: deleted by another host
      throw Error(Code::data_loss, file_failed("read", path, errno).what());
    }
    if (got < 0) throw file_failed("read", path, errno);
    if (got == 0) throw Error(Code::data_loss, fmt::format("{} ends at byte {}", path.string(), offset));
    to += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

FileWriter::FileWriter(const std::filesystem::path& path)
    : path_(path), file_(open_file(path, O_WRONLY, "open")) {}

void FileWriter::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const FileSizeSignalBlock block;
  if (offset != written_) writeback_begin_ = offset;
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file_.get(), bytes.data(), std::min(bytes.size(), kMaxCallBytes),
                                 static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw file_failed("write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  written_ = offset;
  if (written_ - writeback_begin_ < kWritebackBytes) return;
  // A hint: fsync reports failed writes.
  (void)::sync_file_range(file_.get(), static_cast<off_t>(writeback_begin_),
                          static_cast<off_t>(written_ - writeback_begin_), SYNC_FILE_RANGE_WRITE);
  writeback_begin_ = written_;
}

void FileWriter::sync() { sync_descriptor(file_, path_); }

void create_new_file(const std::filesystem::path& path) {
  (void)open_file(path, O_WRONLY | O_CREAT | O_EXCL, "create");
}

void reserve(const std::filesystem::path& path, std::uint64_t bytes) {
  const FileSizeSignalBlock block;
  const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT, "create");
  const std::uint64_t before = file_bytes(file, path);
  if (bytes == 0) return;
  int failed;
  do {
    failed = ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (failed == EINTR);
  if (failed == EOPNOTSUPP || failed == ENOSYS) {
    constexpr std::byte kNothing{0};
    if (bytes > before) FileWriter(path).write_at(bytes - 1, {&kNothing, 1});
  } else if (failed != 0) {
    throw file_failed(fmt::format("reserve {} bytes for", bytes), path, failed);
  }
}

std::uint64_t file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) throw file_failed("read", path, error.value());
  return bytes;
}

std::uint64_t file_bytes(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw file_failed("read", path, errno);
  if (!S_ISREG(status.st_mode)) throw Error(Code::invalid_argument, path.string() + " is not a regular file");
  return static_cast<std::uint64_t>(status.st_size);
}

std::string read_whole_file(const std::filesystem::path& path) {
  const FileDescriptor file = open_to_read(path);
  std::string bytes(static_cast<std::size_t>(file_bytes(file, path)), '\0');
  read_at(file, path, 0, bytes.data(), bytes.size());
  return bytes;
}

void write_synced_file(const std::filesystem::path& path, std::string_view bytes) {
  const FileSizeSignalBlock file_size_signal;
  const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, "create");
  while (!bytes.empty()) {
    const ssize_t put = ::write(file.get(), bytes.data(), std::min(bytes.size(), kMaxCallBytes));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw file_failed("write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  sync_descriptor(file, path);
}

void sync_path(const std::filesystem::path& path) {
  sync_descriptor(open_file(path, O_RDONLY, "open"), path);
}

void remove_path(const std::filesystem::path& path) {
  const auto named = path.has_filename() ? path : path.parent_path();
  const auto parent = named.has_parent_path() ? named.parent_path() : std::filesystem::path(".");
  const int directory = ::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0 && (errno == ENOENT || errno == ENOTDIR)) return;
  if (directory < 0) throw file_failed("open directory", parent, errno);
  remove_at(FileDescriptor(directory), named.filename(), named);
}

std::filesystem::path canonical_path(const std::filesystem::path& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path);
  auto name = std::filesystem::weakly_canonical(absolute, error);
  if (error) name = absolute.lexically_normal();
  return name.has_filename() ? name : name.parent_path();
}

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw file_failed("rename to " + to.string(), from, errno);
}

}  // namespace capstan::io
