// restore_files.hpp -- opens the files of a checkpoint as a restore reads them.
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

/// Keeps one file open at a time. `names` must outlive this object. Not thread-safe.
class RestoreFiles {
 public:
  RestoreFiles(const std::string& directory, const std::vector<std::string>& names)
      : directory_(directory), names_(names) {}
  /// Opens a file by its index in `names`; the descriptor is valid until the next call. Throws
  /// Error(failed_precondition) if the file does not exist on this host.
  const io::FileDescriptor& open(std::uint32_t number) {
    if (number_ == number && file_) return file_;
    path_ = directory_ / names_.at(number);
    try {
      file_ = io::open_to_read(path_);
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
      throw Error(
          Code::failed_precondition,
          fmt::format("cannot restore on {}: {} does not exist there, but does on the coordinator's host; "
                      "make the checkpoint available at the same path on every host",
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
