// append_file.hpp -- a file that grows at its end and is never the end of a job.
#pragma once

#include <filesystem>
#include <string_view>

#include "io/file.hpp"

namespace capstan::io {

/// Nothing is kept back: what `append` has taken is the system's. Made, with the folder above it, by the
/// first append; a file that another user could have planted is not opened (open_to_append). One that cannot
/// be written is one warning, which names the file, and is tried again by the next append. One thread.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// False when some of it is missing; `bytes` that follow a piece that was cut off begin with `separator`.
  bool append(std::string_view bytes, std::string_view separator = "\n");
  const std::filesystem::path& path() const noexcept { return path_; }
  /// It ends with a piece that was cut off.
  bool torn() const noexcept { return torn_; }

 private:
  bool open();
  bool write(std::string_view bytes);
  void warn_once(std::string_view what, int error);

  std::filesystem::path path_;
  FileDescriptor file_;
  bool torn_ = false;
  bool warned_ = false;
};

/// Replaces `path` so that a reader sees the old text or the new one whole. False when it cannot; `warned`
/// keeps that to one warning.
bool replace_text(const std::filesystem::path& path, std::string_view text, bool& warned);

}  // namespace capstan::io
