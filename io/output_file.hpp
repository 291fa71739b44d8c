// output_file.hpp -- a file that has its name once it is whole and on disk, and is not there at all before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "io/file.hpp"

namespace capstan::io {

/// One thread at a time.
class OutputFile {
 public:
  /// Creates `<path>.tmp-<pid>` beside it. Throws Error: already_exists when `path` is there and `replace` is
  /// not set, not_found (no such folder), permission_denied.
  OutputFile(std::filesystem::path path, bool replace);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes what was not published.
  ~OutputFile();

  const std::filesystem::path& path() const noexcept { return path_; }
  /// Where it is until `publish`, for a library that wants to write it by name.
  const std::filesystem::path& temporary() const noexcept { return temporary_; }

  /// Behind what was appended so far. Throws Error resource_exhausted when the disk is full; so does
  /// write_at.
  void append(std::string_view bytes);
  std::uint64_t appended() const noexcept { return appended_; }
  void write_at(std::uint64_t offset, std::string_view bytes);

  /// Makes it durable, then gives it its name.
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
