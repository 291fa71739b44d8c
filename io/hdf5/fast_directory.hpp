// fast_directory.hpp -- <base>/checkpoints-<hash>: the fast checkpoints of one checkpoint directory.
#pragma once

#include <filesystem>
#include <string_view>

#include "io/file.hpp"

namespace capstan::io {

/// An open, checked directory: neither it nor the base is a link, this user owns it, and no other user can
/// replace it or its entries. Removals through it therefore affect only this user's files. Path components
/// above the base are trusted.
class FastDirectory {
 public:
  /// Throws Error: not_found, invalid_argument (a file), permission_denied (a link, owned by another user, or
  /// writable by others).
  explicit FastDirectory(std::filesystem::path path);
  /// Creates the base and the directory with mode 0700 if they are missing.
  static FastDirectory create(const std::filesystem::path& path);

  /// Removes all entries named `checkpoint-*` except `keep`.
  void remove_checkpoints(std::string_view keep = {}) const;
  /// Removes the directory unless it contains a checkpoint or a file that Capstan does not write.
  void remove_if_unused() const;

 private:
  std::filesystem::path path_;
  FileDescriptor base_;
  FileDescriptor directory_;
};

}  // namespace capstan::io
