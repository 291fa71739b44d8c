// append_file.hpp -- best-effort appends to a file: a failure is logged and never ends the job.
#pragma once

#include <filesystem>
#include <string_view>

#include "io/file.hpp"

namespace capstan::io {

/// Unbuffered appends to one file. The first append creates the file and its parent directory; it refuses a
/// file that another user could have planted (open_to_append). A failure logs one warning that names the
/// file; the next append retries. One thread.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Returns false unless all bytes were written. After a partial write, the next append starts with
  /// `separator`.
  bool append(std::string_view bytes, std::string_view separator = "\n");
  const std::filesystem::path& path() const noexcept { return path_; }
  /// Returns true if the file ends with a partial write.
  bool torn() const noexcept { return torn_; }

 private:
  bool open();
  bool write(std::string_view bytes);
  void warn_once(std::string_view operation, int error);

  std::filesystem::path path_;
  FileDescriptor file_;
  bool torn_ = false;
  bool warned_ = false;
};

/// Replaces `path` by rename: readers see either the old text or the complete new text. Not durable. Returns
/// false on failure; logs the failure and sets `warned` unless `warned` is already true.
bool replace_text(const std::filesystem::path& path, std::string_view text, bool& warned);

}  // namespace capstan::io
