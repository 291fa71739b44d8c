// find.cpp -- recognizes a checkpoint by its name or its manifest.
#include "launch/checkpoint/find.hpp"

#include <fmt/format.h>

#include <system_error>

#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::launch::checkpoint {

namespace fs = std::filesystem;

fs::path without_trailing_slash(const std::string& path) {
  const fs::path given(path);
  return given.has_filename() || !given.has_parent_path() ? given : given.parent_path();
}

bool is_checkpoint(const fs::path& path) {
  std::error_code error;  // ignored: opening the path reports the reason
  return io::step_of_name(path.filename().string()).has_value() ||
         fs::exists(path / io::kManifestFile, error);
}

fs::path find_checkpoint(const std::string& path) {
  const fs::path clean = without_trailing_slash(path);
  std::error_code error;
  if (is_checkpoint(clean) || !fs::is_directory(clean, error)) return clean;
  const auto entries = io::list_checkpoints(clean);
  if (!entries.empty()) return entries.back().path;
  throw Error(Code::not_found,
              fmt::format("no checkpoint in {}; a checkpoint is a directory that contains {}", clean.string(),
                          io::kManifestFile));
}

}  // namespace capstan::launch::checkpoint
