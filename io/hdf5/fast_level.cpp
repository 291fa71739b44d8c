// fast_level.cpp -- creates, removes and recovers checkpoints below --checkpoint-fast-dir.
#include "io/hdf5/fast_level.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/hdf5/copy_part.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

std::string random_number() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// Returns "" if the file does not exist.
std::string text_of(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error) ? read_whole_file(file) : std::string();
}

/// Atomic: readers never see a partial file, not even after a crash.
void replace_file(const fs::path& file, std::string_view text) {
  fs::path unfinished = file;
  unfinished += kUnfinished;
  write_synced_file(unfinished, text);
  rename_path(unfinished, file);
}

/// Verifies all checksums while copying. Uses kRecoveredDirectory, not the directory of a save, to which a ps
/// that has not noticed the death of its coordinator may still be writing.
void copy_checkpoint(const CheckpointEntry& entry, CheckpointDirectory& directory) {
  const Manifest manifest = read_manifest(entry.path);
  check_master(entry.path / kMasterFile, manifest.master_bytes, manifest.master_xxh3);
  if (manifest.base) (void)find_base(directory.path() / entry.path.filename(), *manifest.base);
  const fs::path copy = directory.path() / kRecoveredDirectory;
  remove_path(copy);
  std::error_code error;
  if (!fs::create_directory(copy, error)) throw file_failed("create", copy, error.value());
  for (const PartReport& part : manifest.parts) {
    const fs::path from = entry.path / part.file;
    check_hdf5_file(from, part.bytes);
    copy_part(open_to_read(from), from, copy / part.file, part);
  }
  for (const char* name : {kMasterFile, kManifestSumFile, kManifestFile})
    write_synced_file(copy / name, read_whole_file(entry.path / name));
  directory.install(entry.step, copy);
}

}  // namespace

FastLevel::FastLevel(fs::path base, fs::path directory)
    : base_(std::move(base)), directory_(canonical_path(directory)), process_(random_number()) {
  if (base_.empty()) return;
  if (!base_.is_absolute()) {
    throw Error(Code::invalid_argument,
                fmt::format("--checkpoint-fast-dir is {}, expected an absolute path, such as /dev/shm/run",
                            base_.string()));
  }
  path_ = base_ / ("checkpoints-" + checksum_of(directory_.string()));
}

std::string FastLevel::owner_text() const {
  return fmt::format("{} {} {}\n", text_of(directory_ / kFastLevelFile), process_, directory_.string());
}

/// Compares the numbers, not the paths: an earlier checkpoint directory may have had the same path.
bool FastLevel::owner_is_ours() const {
  const std::string number = text_of(directory_ / kFastLevelFile);
  return !number.empty() && text_of(path_ / kOwnerFile).starts_with(number + " ");
}

std::optional<FastDirectory> FastLevel::open_owned() noexcept {
  try {
    FastDirectory fast(path_);
    if (owner_is_ours()) return fast;
  } catch (const Error& error) {
    const bool is_missing = error.code() == Code::not_found;
    if (!is_missing) warn_once(error);
  } catch (const std::exception& error) {
    warn_once(error);
  }
  return std::nullopt;
}

void FastLevel::warn_once(const std::exception& error) noexcept {
  if (!std::exchange(warned_, true))
    log::warn("--checkpoint-fast-dir is not used on this host: {}", error.what());
}

FastLocation FastLevel::begin(std::int64_t step) {
  if (base_.empty()) return {};
  fs::path unfinished = path_ / checkpoint_name(step);
  FastLocation location{unfinished += kUnfinished, {}};
  try {
    if (text_of(directory_ / kFastLevelFile).empty())
      replace_file(directory_ / kFastLevelFile, random_number());
    const FastDirectory fast = FastDirectory::create(path_);
    if (!owner_is_ours()) fast.remove_checkpoints();
    (void)CheckpointDirectory(path_, 1).begin(step);
    replace_file(path_ / kOwnerFile, owner_text());
    location.owner = owner_text();
  } catch (const Error& error) {
    warn_once(error);
  }
  return location;
}

bool FastLevel::publish(std::int64_t step, std::span<const PartReport> parts, const PublishOptions& options) {
  try {
    PublishOptions here = options;
    here.base_directory = directory_;
    CheckpointDirectory(path_, 1).publish(step, parts, here);
    return true;
  } catch (const Error& error) {
    log::warn("cannot publish the checkpoint of step {} in --checkpoint-fast-dir: {}; it is saved to {} only",
              step, error.what(), directory_.string());
    return false;
  }
}

void FastLevel::clear() noexcept {
  try {
    if (base_.empty()) return remove_path(directory_ / kFastLevelFile);
    if (const auto fast = open_owned()) {
      fast->remove_checkpoints();
      fast->remove_if_unused();
    }
  } catch (const std::exception& error) {
    log::warn("cannot remove a checkpoint from --checkpoint-fast-dir: {}", error.what());
  }
}

void FastLevel::close() noexcept {
  if (base_.empty()) return;
  try {
    const auto fast = open_owned();
    if (!fast || !list_checkpoints(path_).empty()) return;
    fast->remove_checkpoints();
    fast->remove_if_unused();
  } catch (const std::exception& error) {
    log::warn("cannot remove {}: {}", path_.string(), error.what());
  }
}

std::optional<std::int64_t> FastLevel::recover(CheckpointDirectory& directory) {
  if (base_.empty() || !open_owned()) return std::nullopt;
  auto entries = list_checkpoints(path_);
  std::reverse(entries.begin(), entries.end());
  const auto newest = directory.latest();
  for (const CheckpointEntry& entry : entries) {
    if (newest && entry.step <= newest->step) break;
    try {
      copy_checkpoint(entry, directory);
    } catch (const Error& error) {
      if (error.code() != Code::data_loss && error.code() != Code::not_found) {
        throw Error(
            error.code(),
            fmt::format("cannot copy {}, which is newer than the checkpoints in {}: {}; free space there, or "
                        "resume from an older checkpoint without --checkpoint-fast-dir",
                        entry.path.string(), directory_.string(), error.what()));
      }
      log::warn("skipped damaged checkpoint {}: {}", entry.path.string(), error.what());
      continue;
    }
    log::info("copied the checkpoint of step {} from {} to {}", entry.step, path_.string(),
              directory_.string());
    clear();
    return entry.step;
  }
  return std::nullopt;
}

}  // namespace capstan::io
