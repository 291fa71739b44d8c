// output_file.hpp -- a file that appears under its name only when it is complete and durable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "io/file.hpp"

namespace capstan::io {

/// One thread at a time.
class OutputFile {
 public:
  /// Creates `<path>.tmp-<pid>`. Throws Error: already_exists if `path` exists and `replace` is false;
  /// not_found if its parent directory does not exist; invalid_argument if `path` is a directory;
  /// permission_denied.
  OutputFile(std::filesystem::path path, bool replace);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes the temporary file unless it was published.
  ~OutputFile();

  const std::filesystem::path& path() const noexcept { return path_; }
  /// Path of the file until `publish`, for libraries that write by name.
  const std::filesystem::path& temporary() const noexcept { return temporary_; }

  /// Writes after the bytes appended so far. This and write_at throw Error(resource_exhausted) if the disk
  /// is full.
  void append(std::string_view bytes);
  std::uint64_t appended() const noexcept { return appended_; }
  void write_at(std::uint64_t offset, std::string_view bytes);

  /// Makes the file durable, then renames it to `path`. Throws Error(already_exists) as the constructor does.
  void publish();

 private:
  std::filesystem::path path_;
  bool replace_;
  std::filesystem::path temporary_;
  FileWriter file_;
  std::uint64_t appended_ = 0;
  bool published_ = false;
};

}  // namespace capstan::io
