// fast_directory.hpp -- <base>/checkpoints-<hash>, where one checkpoint directory's fast checkpoints are.
#pragma once

#include <filesystem>
#include <string_view>

#include "io/file.hpp"

namespace capstan::io {

/// Open and checked: neither the base nor the directory is a link, the directory belongs to this user, and no
/// other user can replace it or its entries. So what is removed through it is this user's own. Components
/// above the base are trusted as in any path.
class FastDirectory {
 public:
  /// Throws Error: not_found, invalid_argument (a file), permission_denied (a link, another user's, or
  /// writable by others).
  explicit FastDirectory(std::filesystem::path path);
  /// Creates base and directory with mode 0700 where they are missing.
  static FastDirectory create(const std::filesystem::path& path);

  /// Removes all entries named `checkpoint-*` but `keep`.
  void remove_checkpoints(std::string_view keep = {}) const;
  /// Removes the directory when there is no `checkpoint-*` in it and nothing that Capstan does not write.
  void remove_if_unused() const;

 private:
  std::filesystem::path path_;
  FileDescriptor base_;
  FileDescriptor directory_;
};

}  // namespace capstan::io
