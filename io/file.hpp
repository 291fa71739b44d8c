// file.hpp -- POSIX files: complete reads, durable writes, and errors that name the file.
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

/// Largest size of one read or write call: Linux transfers at most 2 GiB - 4 KiB.
inline constexpr std::size_t kMaxCallBytes = std::size_t{1} << 30;

using capstan::FileDescriptor;

/// Maps an errno to a code: ENOENT to not_found, EACCES and ELOOP to permission_denied, ENOSPC and EDQUOT to
/// resource_exhausted, unlisted ones to internal.
Code code_of_errno(int error) noexcept;

/// Returns the Error "cannot <operation> <path>: <text of the errno>".
Error file_failed(std::string_view operation, const std::filesystem::path& path, int error,
                  Where where = Where::here());

FileDescriptor open_to_read(const std::filesystem::path& path);

/// Reads exactly `bytes` bytes at `offset`. Throws Error(data_loss) if the file is too short, on EIO, and on
/// ESTALE.
void read_at(const FileDescriptor& file, const std::filesystem::path& path, std::uint64_t offset, void* out,
             std::size_t bytes);

/// Writes to an existing file. One thread.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path);
  /// Writes all bytes and starts their write-back early, so that `sync` has little left to do. Throws Error:
  /// resource_exhausted (disk full, quota), internal.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Calls fsync.
  void sync();

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t writeback_begin_ = 0;  // start of the bytes whose write-back was not yet requested,
  std::uint64_t written_ = 0;          // and their end
};

/// Creates an empty file. Throws Error(already_exists) if `path` exists.
void create_new_file(const std::filesystem::path& path);

/// Allocates `bytes` bytes for a file, so that a full disk is reported before anything is written. Creates
/// the file if it is missing, and never shortens it. Throws Error(resource_exhausted). If the file system
/// does not support fallocate, writes only the last byte.
void reserve(const std::filesystem::path& path, std::uint64_t bytes);

std::uint64_t file_bytes(const std::filesystem::path& path);
/// Returns the size of an open file, even if `path` refers to another file by now; errors name `path`.
std::uint64_t file_bytes(const FileDescriptor& file, const std::filesystem::path& path);

std::string read_whole_file(const std::filesystem::path& path);

/// Creates or overwrites `path`, which must not be a link. Its bytes are durable when this returns, its name
/// only after its directory is synced.
void write_synced_file(const std::filesystem::path& path, std::string_view bytes);

/// Calls fsync on a file or directory.
void sync_path(const std::filesystem::path& path);

/// Removes a file, or a directory with all its entries, including those that other processes add meanwhile.
/// Does nothing if `path` does not exist.
void remove_path(const std::filesystem::path& path);

/// Returns the absolute path without links, "." and "..", the same for every spelling; `path` need not exist.
std::filesystem::path canonical_path(const std::filesystem::path& path);

/// Atomic for other processes; durable only after the directory is synced.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace capstan::io
