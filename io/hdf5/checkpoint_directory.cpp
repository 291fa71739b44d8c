// checkpoint_directory.cpp -- publishes step by step: nothing is visible before it is durable.
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
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/hdf5/master.hpp"
#include "io/hdf5/retained_checkpoints.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(fs::path path, std::string_view suffix) { return path += suffix; }

/// Returns the step of a name such as "checkpoint-00000012<suffix>".
std::optional<std::int64_t> step_of_suffixed_name(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  return step_of_name(name.substr(0, name.size() - suffix.size()));
}

/// Returns the names of all subdirectories of `directory`; empty if it does not exist.
std::vector<std::string> subdirectory_names(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code unreadable;
    if (it->is_directory(unreadable)) names.push_back(it->path().filename().string());
  }
  const bool missing = error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !missing) throw file_failed("list", directory, error.value());
  return names;
}

/// Renames a checkpoint first, so that a crash leaves no partial checkpoint under its name.
void delete_directory(const fs::path& path, bool is_checkpoint) {
  fs::path doomed = path;
  if (is_checkpoint) {
    doomed = with_suffix(path, kDeleted);
    remove_path(doomed);
    rename_path(path, doomed);
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

bool is_any_base(const fs::path& checkpoint, const std::vector<Base>& bases) {
  return std::any_of(bases.begin(), bases.end(), [&](const Base& base) { return is_base(checkpoint, base); });
}

/// Returns true if an increment in `directory` depends on `checkpoint`, or if an increment is unreadable.
bool may_be_base(const fs::path& directory, const fs::path& checkpoint) {
  try {
    return is_any_base(checkpoint, bases_of(list_checkpoints(directory)));
  } catch (const Error& error) {
    log::warn("not removing {}: {}", checkpoint.string(), error.what());
    return true;
  }
}

/// Removes unfinished, deleted and superseded checkpoints that a crash left behind.
void remove_stale_directories(const fs::path& directory) {
  for (const std::string& name : subdirectory_names(directory)) {
    const bool unfinished = step_of_suffixed_name(name, kUnfinished) || step_of_suffixed_name(name, kDeleted);
    const auto replaced = step_of_suffixed_name(name, kReplaced);
    const bool superseded = replaced && fs::exists(directory / checkpoint_name(*replaced)) &&
                            !may_be_base(directory, directory / name);
    if (unfinished || superseded || name == kRecoveredDirectory)
      delete_directory(directory / name, /*is_checkpoint=*/false);
  }
}

Error not_writable(const fs::path& directory, std::string_view reason, Code code) {
  return Error(
      code == Code::resource_exhausted ? code : Code::permission_denied,
      fmt::format("cannot write checkpoints to {}: {}; free space there, or choose another directory with "
                  "--checkpoint-dir",
                  directory.string(), reason));
}

void create_checkpoint_directory(const fs::path& path, const fs::path& directory) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw not_writable(directory, error.message(), code_of_errno(error.value()));
}

void check_step(std::int64_t step) {
  if (step < 0)
    throw Error(Code::invalid_argument,
                fmt::format("cannot save a checkpoint of step {}, expected 0 or more", step));
}

/// Detects parts that a ps wrote to another directory, or that another job removed.
void check_parts_present(const fs::path& checkpoint, std::span<const PartReport> parts) {
  for (const PartReport& part : parts) check_hdf5_file(checkpoint / part.file, part.bytes);
}

/// Removes parts of abandoned attempts, such as those of a ps that was fenced while it wrote.
void remove_other_parts(const fs::path& checkpoint, std::span<const PartReport> parts) {
  std::vector<fs::path> others;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint)) {
    const std::string name = entry.path().filename();
    const auto has_name = [&](const PartReport& part) { return part.file == name; };
    if (part_of_name(name) && std::none_of(parts.begin(), parts.end(), has_name))
      others.push_back(entry.path());
  }
  for (const fs::path& other : others) remove_path(other);
}

void write_manifest(const fs::path& checkpoint, Manifest manifest) {
  const std::string master = read_whole_file(checkpoint / kMasterFile);
  manifest.master_bytes = master.size();
  manifest.master_xxh3 = checksum_of(master);
  const std::string text = to_json(manifest);
  write_synced_file(checkpoint / kManifestSumFile, checksum_of(text) + "\n");
  write_synced_file(checkpoint / kManifestFile, text);
}

}  // namespace

std::vector<CheckpointEntry> list_checkpoints(const fs::path& directory) {
  std::map<std::int64_t, fs::path> found;
  for (const std::string& name : subdirectory_names(directory)) {
    if (const auto step = step_of_name(name)) found[*step] = directory / name;
    // A crash while a checkpoint is replaced leaves the old one under this name.
    if (const auto step = step_of_suffixed_name(name, kReplaced)) found.emplace(*step, directory / name);
  }
  std::vector<CheckpointEntry> entries;
  for (auto& [step, path] : found) entries.push_back({step, std::move(path)});
  return entries;
}

CheckpointDirectory::CheckpointDirectory(fs::path directory, int max_to_keep, double keep_every_n_hours)
    : directory_(std::move(directory)), max_to_keep_(max_to_keep), keep_every_n_hours_(keep_every_n_hours) {
  if (directory_.empty())
    throw Error(Code::invalid_argument, "the path of the checkpoint directory is empty");
  if (max_to_keep < 0) {
    throw Error(Code::invalid_argument,
                fmt::format("max_to_keep is {}, expected 0 (keep all) or more", max_to_keep));
  }
  if (!(keep_every_n_hours >= 0)) {
    throw Error(
        Code::invalid_argument,
        fmt::format("keep_every_n_hours is {}, expected 0 (retain none) or more", keep_every_n_hours));
  }
}

void CheckpointDirectory::check_writable() const {
  create_checkpoint_directory(directory_, directory_);
  const auto probe = directory_ / fmt::format(".probe-{}", ::getpid());
  try {
    write_synced_file(probe, "capstan\n");
    remove_path(probe);
    if (keep_every_n_hours_ > 0) RetainedCheckpoints(directory_).start();
  } catch (const Error& error) {
    ::unlink(probe.c_str());
    throw not_writable(directory_, error.what(), error.code());
  }
}

fs::path CheckpointDirectory::begin(std::int64_t step) {
  check_step(step);
  remove_stale_directories(directory_);
  auto unfinished = with_suffix(directory_ / checkpoint_name(step), kUnfinished);
  create_checkpoint_directory(unfinished, directory_);
  return unfinished;
}

fs::path CheckpointDirectory::publish(std::int64_t step, std::span<const PartReport> parts,
                                      const PublishOptions& options) {
  check_step(step);
  const auto unfinished = with_suffix(directory_ / checkpoint_name(step), kUnfinished);

  before_step("check");
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
  const fs::path& of_base = options.base_directory.empty() ? directory_ : options.base_directory;
  if (manifest.base) (void)find_base(of_base / checkpoint_name(step), *manifest.base);
  check_parts_present(unfinished, manifest.parts);
  remove_other_parts(unfinished, manifest.parts);

  before_step("master");
  write_master(unfinished, manifest);
  before_step("manifest");
  write_manifest(unfinished, std::move(manifest));
  return install(step, unfinished);
}

fs::path CheckpointDirectory::install(std::int64_t step, const fs::path& complete) {
  const auto checkpoint = directory_ / checkpoint_name(step);
  before_step("sync");
  sync_path(complete);

  before_step("rename");
  rename_checkpoint(complete, checkpoint);
  before_step("sync directory");
  sync_path(directory_);

  before_step("latest");
  const auto latest_file = directory_ / kLatestFile;
  write_synced_file(with_suffix(latest_file, kUnfinished), checkpoint_name(step) + "\n");
  before_step("rename latest");
  rename_path(with_suffix(latest_file, kUnfinished), latest_file);
  sync_path(directory_);

  before_step("delete");
  delete_expired(step);
  before_step("done");
  return checkpoint;
}

std::optional<CheckpointEntry> CheckpointDirectory::latest() const {
  auto entries = list();
  if (entries.empty()) return std::nullopt;
  return std::move(entries.back());
}

void CheckpointDirectory::before_step(std::string_view name) const {
  if (hook_) hook_(name);
}

void CheckpointDirectory::rename_checkpoint(const fs::path& from, const fs::path& to) const {
  if (fs::exists(to)) {
    const auto replaced = with_suffix(to, kReplaced);
    if (fs::exists(replaced) && may_be_base(to.parent_path(), replaced))
      log::warn("{} is replaced again: increments on its first version become unusable", to.string());
    remove_path(replaced);
    rename_path(to, replaced);
    before_step("rename over");
  }
  rename_path(from, to);
}

std::vector<CheckpointEntry> CheckpointDirectory::expired_checkpoints(std::int64_t newest) const {
  RetainedCheckpoints retained(directory_);
  std::vector<CheckpointEntry> kept, old;
  for (CheckpointEntry& entry : list()) {
    const bool keep = entry.step == newest || retained.contains(entry.path.filename().string());
    (keep ? kept : old).push_back(std::move(entry));
  }
  const std::size_t keep_newest = max_to_keep_ == 0 ? old.size() : static_cast<std::size_t>(max_to_keep_) - 1;
  std::vector<CheckpointEntry> expired;
  for (std::size_t i = 0; i < old.size(); ++i) {
    const bool keep = i + keep_newest >= old.size() ||
                      retained.retain(old[i].path.filename().string(), keep_every_n_hours_);
    (keep ? kept : expired).push_back(std::move(old[i]));
  }
  const std::vector<Base> needed = bases_of(kept);
  std::erase_if(expired, [&](const CheckpointEntry& e) { return is_any_base(e.path, needed); });
  // Increments first: a crash leaves no increment without its base.
  std::stable_partition(expired.begin(), expired.end(),
                        [](const CheckpointEntry& e) { return base_of(e.path).has_value(); });
  return expired;
}

void CheckpointDirectory::delete_expired(std::int64_t newest) const {
  try {
    remove_stale_directories(directory_);
    if (max_to_keep_ == 0) return;
    for (const CheckpointEntry& entry : expired_checkpoints(newest)) {
      before_step("delete one");
      delete_directory(entry.path, /*is_checkpoint=*/true);
    }
  } catch (const Error& error) {
    log::warn("cannot delete old checkpoints: {}", error.what());  // the new one is safe
  }
}

}  // namespace capstan::io
