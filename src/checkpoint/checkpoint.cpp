// checkpoint.cpp -- a checkpoint under a name of the program's: saved beside it, then renamed.
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

void Checkpoint::write(const fs::path& folder, const std::string& user_state) {
  const fs::path target = folder.has_filename() ? folder : folder.parent_path();
  std::error_code error;
  const bool there = fs::exists(target, error);
  if (there && !fs::exists(target / io::kManifestFile, error)) {
    throw Error(
        Code::already_exists,
        fmt::format("{} is there, and is no checkpoint: give another name, or remove it", target.string()));
  }
  const fs::path aside = with_suffix(target, ".writing");
  const fs::path replaced = with_suffix(target, io::kReplaced);
  fs::path saved;
  {
    CheckpointManager manager(strategy_, {.directory = aside, .max_to_keep = 0, .settings = settings_});
    saved = manager.save(0, user_state);
    if (there) {
      io::remove_path(replaced);
      io::rename_path(target, replaced);
    }
    io::rename_path(saved, target);
    io::sync_path(fs::absolute(target).parent_path());
  }
  strategy_.implementation().contents().move_checkpoint(fs::absolute(saved).string(),
                                                        fs::absolute(target).string());
  io::remove_path(replaced);
  io::remove_path(aside);
}

}  // namespace capstan
