// fast_level.cpp -- checkpoints below --checkpoint-fast-dir: made, taken away, brought to where they belong.
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

/// Empty when there is none.
std::string text_of(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error) ? read_whole_file(file) : std::string();
}

/// Nobody sees half of it, also after a crash.
void put(const fs::path& file, std::string_view text) {
  fs::path unfinished = file;
  unfinished += kUnfinished;
  write_synced_file(unfinished, text);
  rename_path(unfinished, file);
}

/// Every byte is compared with its checksum on the way. Not in the folder of a save: a ps may be at it that
/// has not noticed yet that the coordinator is another one.
void bring(const CheckpointEntry& entry, CheckpointDirectory& directory) {
  const Manifest manifest = read_manifest(entry.path);
  check_master(entry.path / kMasterFile, manifest.master_bytes, manifest.master_xxh3);
  if (manifest.base) (void)find_base(directory.path() / entry.path.filename(), *manifest.base);
  const fs::path folder = directory.path() / kRescued;
  remove_path(folder);
  std::error_code error;
  if (!fs::create_directory(folder, error)) throw file_failed("create", folder, error.value());
  for (const PartReport& part : manifest.parts) {
    const fs::path from = entry.path / part.file;
    check_hdf5_file(from, part.bytes);
    copy_part(open_to_read(from), from, folder / part.file, part);
  }
  for (const char* name : {kMasterFile, kManifestSumFile, kManifestFile})
    write_synced_file(folder / name, read_whole_file(entry.path / name));
  directory.put_in_place(entry.step, folder);
}

}  // namespace

FastLevel::FastLevel(fs::path base, fs::path directory)
    : base_(std::move(base)), directory_(full_name(directory)), process_(random_number()) {
  if (base_.empty()) return;
  if (!base_.is_absolute()) {
    throw Error(
        Code::invalid_argument,
        fmt::format("--checkpoint-fast-dir is {}; give the full name of a folder, such as /dev/shm/run",
                    base_.string()));
  }
  folder_ = base_ / ("checkpoints-" + checksum_of(directory_.string()));
}

std::string FastLevel::owner_text() const {
  return fmt::format("{} {} {}\n", text_of(directory_ / kFastLevelFile), process_, directory_.string());
}

/// And not of an earlier checkpoint directory of the same name.
bool FastLevel::owner_is_ours() const {
  const std::string number = text_of(directory_ / kFastLevelFile);
  return !number.empty() && text_of(folder_ / kOwnerFile).starts_with(number + " ");
}

std::optional<FastDirectory> FastLevel::ours() noexcept {
  try {
    FastDirectory fast(folder_);
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

FastPlace FastLevel::begin(std::int64_t step) {
  if (base_.empty()) return {};
  fs::path unfinished = folder_ / checkpoint_name(step);
  FastPlace place{unfinished += kUnfinished, {}};
  try {
    if (text_of(directory_ / kFastLevelFile).empty()) put(directory_ / kFastLevelFile, random_number());
    const FastDirectory fast = FastDirectory::create(folder_);
    if (!owner_is_ours()) fast.remove_checkpoints();
    (void)CheckpointDirectory(folder_, 1).begin(step);
    put(folder_ / kOwnerFile, owner_text());
    place.owner = owner_text();
  } catch (const Error& error) {
    warn_once(error);
  }
  return place;
}

bool FastLevel::publish(std::int64_t step, std::span<const PartReport> parts, const PublishOptions& options) {
  try {
    PublishOptions here = options;
    here.bases = directory_;
    CheckpointDirectory(folder_, 1).publish(step, parts, here);
    return true;
  } catch (const Error& error) {
    log::warn("step {} is no checkpoint in --checkpoint-fast-dir, and will be one in {}: {}", step,
              directory_.string(), error.what());
    return false;
  }
}

void FastLevel::clear() noexcept {
  try {
    if (base_.empty()) return remove_path(directory_ / kFastLevelFile);
    if (const auto fast = ours()) {
      fast->remove_checkpoints();
      fast->remove_if_unused();
    }
  } catch (const std::exception& error) {
    log::warn("a checkpoint stays in --checkpoint-fast-dir: {}", error.what());
  }
}

void FastLevel::leave() noexcept {
  if (base_.empty()) return;
  try {
    const auto fast = ours();
    if (!fast || !list_checkpoints(folder_).empty()) return;
    fast->remove_checkpoints();
    fast->remove_if_unused();
  } catch (const std::exception& error) {
    log::warn("{} stays: {}", folder_.string(), error.what());
  }
}

std::optional<std::int64_t> FastLevel::rescue(CheckpointDirectory& directory) {
  if (base_.empty() || !ours()) return std::nullopt;
  auto entries = list_checkpoints(folder_);
  std::reverse(entries.begin(), entries.end());
  const auto newest = directory.latest();
  for (const CheckpointEntry& entry : entries) {
    if (newest && entry.step <= newest->step) break;
    try {
      bring(entry, directory);
    } catch (const Error& error) {
      if (error.code() != Code::data_loss && error.code() != Code::not_found) {
        throw Error(
            error.code(),
            fmt::format("{}; {} has a newer checkpoint than {}, and is to be copied there: make room, "
                        "or go on from an older one without --checkpoint-fast-dir",
                        error.what(), entry.path.string(), directory_.string()));
      }
      log::warn("damaged checkpoint passed over: {}: {}", entry.path.string(), error.what());
      continue;
    }
    log::info("step {} had reached {} only; it is in {} now", entry.step, folder_.string(),
              directory_.string());
    clear();
    return entry.step;
  }
  return std::nullopt;
}

}  // namespace capstan::io
