// restore_files.hpp -- files of a checkpoint, opened as a restore needs them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "cluster/runtime.hpp"
#include "io/file.hpp"

namespace capstan::ps {

/// Keeps one file open at a time. `names` must outlive this object.
class RestoreFiles {
 public:
  RestoreFiles(const std::string& directory, const std::vector<std::string>& names)
      : directory_(directory), names_(names) {}
  /// Opens a file by its index in `names`. Throws Error(failed_precondition) if this host does not see it.
  const io::FileDescriptor& open(std::uint32_t number) {
    if (number_ == number && file_) return file_;
    path_ = directory_ / names_.at(number);
    try {
      file_ = io::open_to_read(path_);
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
      throw Error(
          Code::failed_precondition,
          fmt::format("{} does not see {}, which the coordinator does: a checkpoint must lie at the same "
                      "path on every host",
                      cluster::host_name(), path_.string()));
    }
    number_ = number;
    return file_;
  }
  /// Path of the file that was opened last.
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path directory_;
  const std::vector<std::string>& names_;
  std::filesystem::path path_;
  io::FileDescriptor file_;
  std::uint32_t number_ = 0;
};

}  // namespace capstan::ps
