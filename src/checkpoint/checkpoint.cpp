// checkpoint.cpp -- a checkpoint under a name that the program chooses: written beside it, then renamed.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "capstan/checkpoint.hpp"
#include "io/file.hpp"
#include "io/hdf5/layout.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(fs::path path, std::string_view suffix) { return path += suffix; }

}  // namespace

void Checkpoint::write(const fs::path& directory, const std::string& user_state) {
  const fs::path target = directory.has_filename() ? directory : directory.parent_path();
  std::error_code error;
  const bool exists = fs::exists(target, error);
  if (exists && !fs::exists(target / io::kManifestFile, error)) {
    throw Error(
        Code::already_exists,
        fmt::format(
            "cannot write checkpoint {}: the path exists and is no checkpoint; remove it, or use another "
            "name",
            target.string()));
  }
  const fs::path temporary = with_suffix(target, ".writing");
  const fs::path replaced = with_suffix(target, io::kReplaced);
  fs::path saved;
  {
    CheckpointManager manager(strategy_, {.directory = temporary, .max_to_keep = 0, .settings = settings_});
    saved = manager.save(0, user_state);
    if (exists) {
      io::remove_path(replaced);
      io::rename_path(target, replaced);
    }
    io::rename_path(saved, target);
    io::sync_path(fs::absolute(target).parent_path());
  }
  strategy_.implementation().contents().move_checkpoint(fs::absolute(saved).string(),
                                                        fs::absolute(target).string());
  io::remove_path(replaced);
  io::remove_path(temporary);
}

}  // namespace capstan
