// restore_files.hpp -- the files that a ps reads its part of a checkpoint from.
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

/// Each file is opened when its first bytes are read, and one at a time.
class RestoreFiles {
 public:
  RestoreFiles(const std::string& folder, const std::vector<std::string>& names)
      : folder_(folder), names_(names) {}
  const io::FileDescriptor& open(std::uint32_t number) {
    if (number_ == number && file_) return file_;
    path_ = folder_ / names_.at(number);
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
  /// Of the file that was opened last.
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path folder_;
  const std::vector<std::string>& names_;
  std::filesystem::path path_;
  io::FileDescriptor file_;
  std::uint32_t number_ = 0;
};

}  // namespace capstan::ps
