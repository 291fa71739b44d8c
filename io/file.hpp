// file.hpp -- POSIX files: whole reads, durable writes, and errors that name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "capstan/error.hpp"

namespace capstan::io {

/// Of one call to read or write: Linux moves at most 2 GiB - 4 KiB.
inline constexpr std::size_t kMaxCallBytes = std::size_t{1} << 30;

using capstan::FileDescriptor;

/// The code that fits an errno: ENOENT not_found, EACCES and ELOOP permission_denied, ENOSPC
/// resource_exhausted, else internal.
Code code_of_errno(int error) noexcept;

/// Error "cannot <what> <path>: <errno in words>".
Error file_failed(std::string_view what, const std::filesystem::path& path, int error,
                  Where where = Where::here());

FileDescriptor open_to_read(const std::filesystem::path& path);

/// Exactly `bytes` bytes from `offset` on. Throws Error data_loss when the file ends before that, or its disk
/// cannot read them.
void read_at(const FileDescriptor& file, const std::filesystem::path& path, std::uint64_t offset, void* out,
             std::size_t bytes);

/// Writes into a file that is there. One thread.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path);
  /// All of it. The system begins to bring it to the disk soon, so that `sync` has little left to do. Throws
  /// Error: resource_exhausted (disk full, quota), internal.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// fsync.
  void sync();

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t begun_ = 0;    // what has been written since the system was last told: where it begins,
  std::uint64_t written_ = 0;  // and where it ends
};

/// An empty file. Throws Error already_exists when there is one.
void create_new_file(const std::filesystem::path& path);

/// Room for `bytes` bytes in a file, which is made where it is missing, so that a disk which is too full is
/// known before anything is written; it gets no shorter. Throws Error resource_exhausted. Where the file
/// system cannot reserve, its last byte alone is tried.
void reserve(const std::filesystem::path& path, std::uint64_t bytes);

std::uint64_t file_bytes(const std::filesystem::path& path);
/// Of a file that is open, whatever has its name by now.
std::uint64_t file_bytes(const FileDescriptor& file, const std::filesystem::path& path);

std::string read_whole_file(const std::filesystem::path& path);

/// Creates or replaces `path`, which must not be a link; its bytes are durable when this returns, its name
/// once the folder is synced.
void write_synced_file(const std::filesystem::path& path, std::string_view bytes);

/// fsync of a file or a folder.
void sync_path(const std::filesystem::path& path);

/// A file, or a folder with all that is in it, and what somebody may make there meanwhile; nothing when it is
/// not there.
void remove_path(const std::filesystem::path& path);

/// One name for a file or folder, however it is spelled and whatever links lead there; it need not exist.
std::filesystem::path full_name(const std::filesystem::path& path);

/// Atomic in the eyes of other processes; durable once the folder is synced.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace capstan::io
