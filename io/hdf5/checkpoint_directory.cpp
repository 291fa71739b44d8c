// checkpoint_directory.cpp -- publishing, step by step: nothing is visible before it is durable.
#include "io/hdf5/checkpoint_directory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/hdf5/kept_checkpoints.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/hdf5/master.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(fs::path path, std::string_view suffix) { return path += suffix; }

/// The step of "checkpoint-00000012<suffix>".
std::optional<std::int64_t> step_of_leftover(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  return step_of_name(name.substr(0, name.size() - suffix.size()));
}

/// Names of all folders below `directory`; none when it does not exist.
std::vector<std::string> folder_names(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code unreadable;
    if (it->is_directory(unreadable)) names.push_back(it->path().filename().string());
  }
  const bool not_there = error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !not_there) throw file_failed("list", directory, error.value());
  return names;
}

/// Renamed first, so that a crash midway leaves no half of a checkpoint under its name.
void delete_folder(const fs::path& folder, bool is_checkpoint) {
  fs::path doomed = folder;
  if (is_checkpoint) {
    doomed = with_suffix(folder, kDeleted);
    remove_path(doomed);
    rename_path(folder, doomed);
  }
  remove_path(doomed);
}

std::vector<Base> bases_of(const std::vector<CheckpointEntry>& entries) {
  std::vector<Base> bases;
  for (const CheckpointEntry& entry : entries) {
    if (auto base = base_of(entry.path)) bases.push_back(*std::move(base));
  }
  return bases;
}

bool is_any_base(const fs::path& folder, const std::vector<Base>& bases) {
  return std::any_of(bases.begin(), bases.end(), [&](const Base& base) { return is_base(folder, base); });
}

/// Increments may still be on one that was replaced; so may they when one of them cannot be read.
bool may_be_base(const fs::path& directory, const fs::path& folder) {
  try {
    return is_any_base(folder, bases_of(list_checkpoints(directory)));
  } catch (const Error& error) {
    log::warn("{} stays: {}", folder.string(), error.what());
    return true;
  }
}

void remove_leftovers(const fs::path& directory) {
  for (const std::string& name : folder_names(directory)) {
    const bool unfinished = step_of_leftover(name, kUnfinished) || step_of_leftover(name, kDeleted);
    const auto replaced = step_of_leftover(name, kReplaced);
    const bool superseded = replaced && fs::exists(directory / checkpoint_name(*replaced)) &&
                            !may_be_base(directory, directory / name);
    if (unfinished || superseded || name == kRescued)
      delete_folder(directory / name, /*is_checkpoint=*/false);
  }
}

Error not_writable(const fs::path& directory, std::string_view reason, Code code) {
  return Error(
      code == Code::resource_exhausted ? code : Code::permission_denied,
      fmt::format("cannot write checkpoints to {}: {}; make room there or choose another folder with "
                  "--checkpoint-dir",
                  directory.string(), reason));
}

void create_folders(const fs::path& folder, const fs::path& directory) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw not_writable(directory, error.message(), code_of_errno(error.value()));
}

void check_step(std::int64_t step) {
  if (step < 0)
    throw Error(Code::invalid_argument, fmt::format("a checkpoint of step {}; steps start at 0", step));
}

/// A part that its ps wrote to another folder, or that another job removed, is noticed before anything refers
/// to it.
void check_parts_present(const fs::path& folder, std::span<const PartReport> parts) {
  for (const PartReport& part : parts) check_hdf5_file(folder / part.file, part.bytes);
}

/// Removes parts of attempts that were given up, such as those of a ps that was fenced while it wrote.
void remove_other_parts(const fs::path& folder, std::span<const PartReport> parts) {
  std::vector<fs::path> others;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const auto has_name = [&](const PartReport& part) { return part.file == name; };
    if (part_of_name(name) && std::none_of(parts.begin(), parts.end(), has_name))
      others.push_back(entry.path());
  }
  for (const fs::path& other : others) remove_path(other);
}

void write_manifest(const fs::path& folder, Manifest manifest) {
  const std::string master = read_whole_file(folder / kMasterFile);
  manifest.master_bytes = master.size();
  manifest.master_xxh3 = checksum_of(master);
  const std::string text = to_json(manifest);
  write_synced_file(folder / kManifestSumFile, checksum_of(text) + "\n");
  write_synced_file(folder / kManifestFile, text);
}

}  // namespace

std::vector<CheckpointEntry> list_checkpoints(const fs::path& directory) {
  std::map<std::int64_t, fs::path> found;
  for (const std::string& name : folder_names(directory)) {
    if (const auto step = step_of_name(name)) found[*step] = directory / name;
    // A crash in the middle of replacing a checkpoint leaves the old one under this name.
    if (const auto step = step_of_leftover(name, kReplaced)) found.emplace(*step, directory / name);
  }
  std::vector<CheckpointEntry> entries;
  for (auto& [step, path] : found) entries.push_back({step, std::move(path)});
  return entries;
}

CheckpointDirectory::CheckpointDirectory(fs::path directory, int max_to_keep, double keep_every_n_hours)
    : directory_(std::move(directory)), max_to_keep_(max_to_keep), keep_every_n_hours_(keep_every_n_hours) {
  if (directory_.empty()) throw Error(Code::invalid_argument, "the checkpoint folder has an empty name");
  if (max_to_keep < 0) {
    throw Error(Code::invalid_argument,
                fmt::format("max_to_keep is {}; it is 0 (keep all) or more", max_to_keep));
  }
  if (!(keep_every_n_hours >= 0)) {
    throw Error(
        Code::invalid_argument,
        fmt::format("keep_every_n_hours is {}; it is 0 (keep none for longer) or more", keep_every_n_hours));
  }
}

void CheckpointDirectory::check_writable() const {
  create_folders(directory_, directory_);
  const auto probe = directory_ / fmt::format(".probe-{}", ::getpid());
  try {
    write_synced_file(probe, "capstan\n");
    remove_path(probe);
    if (keep_every_n_hours_ > 0) KeptCheckpoints(directory_).start();
  } catch (const Error& error) {
    ::unlink(probe.c_str());
    throw not_writable(directory_, error.what(), error.code());
  }
}

fs::path CheckpointDirectory::begin(std::int64_t step) {
  check_step(step);
  remove_leftovers(directory_);
  auto folder = with_suffix(directory_ / checkpoint_name(step), kUnfinished);
  create_folders(folder, directory_);
  return folder;
}

fs::path CheckpointDirectory::publish(std::int64_t step, std::span<const PartReport> parts,
                                      const PublishOptions& options) {
  check_step(step);
  const auto unfinished = with_suffix(directory_ / checkpoint_name(step), kUnfinished);

  step_done("check");
  Manifest manifest{.step = step,
                    .base = options.base,
                    .user_state = options.user_state,
                    .settings = options.settings,
                    .positions = options.positions,
                    .counters = options.counters};
  check_json(manifest);
  manifest.parts = in_order(parts);
  manifest.variables = variables_of(manifest.parts);
  check_base(manifest);
  const fs::path& bases = options.bases.empty() ? directory_ : options.bases;
  if (manifest.base) (void)find_base(bases / checkpoint_name(step), *manifest.base);
  check_parts_present(unfinished, manifest.parts);
  remove_other_parts(unfinished, manifest.parts);

  step_done("master");
  write_master(unfinished, manifest);
  step_done("manifest");
  write_manifest(unfinished, std::move(manifest));
  return put_in_place(step, unfinished);
}

fs::path CheckpointDirectory::put_in_place(std::int64_t step, const fs::path& whole) {
  const auto folder = directory_ / checkpoint_name(step);
  step_done("sync");
  sync_path(whole);

  step_done("rename");
  move_into_place(whole, folder);
  step_done("sync directory");
  sync_path(directory_);

  step_done("latest");
  const auto latest_file = directory_ / kLatestFile;
  write_synced_file(with_suffix(latest_file, kUnfinished), checkpoint_name(step) + "\n");
  step_done("rename latest");
  rename_path(with_suffix(latest_file, kUnfinished), latest_file);
  sync_path(directory_);

  step_done("delete");
  delete_oldest(step);
  step_done("done");
  return folder;
}

std::optional<CheckpointEntry> CheckpointDirectory::latest() const {
  auto entries = list();
  if (entries.empty()) return std::nullopt;
  return std::move(entries.back());
}

void CheckpointDirectory::step_done(std::string_view next) const {
  if (hook_) hook_(next);
}

void CheckpointDirectory::move_into_place(const fs::path& from, const fs::path& to) const {
  if (fs::exists(to)) {
    const auto replaced = with_suffix(to, kReplaced);
    if (fs::exists(replaced) && may_be_base(to.parent_path(), replaced))
      log::warn("{} is replaced once more: increments on what it was at first are lost", to.string());
    remove_path(replaced);
    rename_path(to, replaced);
    step_done("rename over");
  }
  rename_path(from, to);
}

std::vector<CheckpointEntry> CheckpointDirectory::beyond_those_to_keep(std::int64_t newest) const {
  KeptCheckpoints kept(directory_);
  std::vector<CheckpointEntry> stay, old;
  for (CheckpointEntry& entry : list()) {
    const bool stays = entry.step == newest || kept.contains(entry.path.filename().string());
    (stays ? stay : old).push_back(std::move(entry));
  }
  const std::size_t keep = max_to_keep_ == 0 ? old.size() : static_cast<std::size_t>(max_to_keep_) - 1;
  std::vector<CheckpointEntry> doomed;
  for (std::size_t i = 0; i < old.size(); ++i) {
    const bool stays =
        i + keep >= old.size() || kept.keep(old[i].path.filename().string(), keep_every_n_hours_);
    (stays ? stay : doomed).push_back(std::move(old[i]));
  }
  const std::vector<Base> needed = bases_of(stay);
  std::erase_if(doomed, [&](const CheckpointEntry& e) { return is_any_base(e.path, needed); });
  // A crash midway leaves no increment without its base.
  std::stable_partition(doomed.begin(), doomed.end(),
                        [](const CheckpointEntry& e) { return base_of(e.path).has_value(); });
  return doomed;
}

void CheckpointDirectory::delete_oldest(std::int64_t newest) const {
  try {
    remove_leftovers(directory_);
    if (max_to_keep_ == 0) return;
    for (const CheckpointEntry& entry : beyond_those_to_keep(newest)) {
      step_done("delete one");
      delete_folder(entry.path, /*is_checkpoint=*/true);
    }
  } catch (const Error& error) {
    log::warn("old checkpoints stay: {}", error.what());  // the new one is safe
  }
}

}  // namespace capstan::io
