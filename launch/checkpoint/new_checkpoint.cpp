// new_checkpoint.cpp -- what a job would do at a save, by one process.
#include "launch/checkpoint/new_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/part_writer.hpp"
#include "launch/checkpoint/find.hpp"

namespace capstan::launch::checkpoint {
namespace {

namespace fs = std::filesystem;

/// For a job that is about to end.
constexpr std::chrono::milliseconds kTimeout{3'000};

bool there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

fs::path checked(fs::path directory, std::int64_t step, bool force) {
  if (is_one_checkpoint(directory)) {
    throw Error(Code::invalid_argument,
                fmt::format("{} is a checkpoint; give a folder for checkpoints", directory.string()));
  }
  if (force) return directory;
  for (const io::CheckpointEntry& entry : io::list_checkpoints(directory)) {
    if (entry.step != step) continue;
    throw Error(Code::already_exists,
                fmt::format("{} is there already; give another folder, or --force to replace it",
                            entry.path.string()));
  }
  return directory;
}

/// Rows of part `index`: as many as of the others, or one more.
void cut(io::PartArray& array, std::uint64_t index, std::uint64_t parts) {
  const std::uint64_t each = array.shape[0] / parts, extra = array.shape[0] % parts;
  array.first_row = index * each + std::min(index, extra);
  array.rows = each + (index < extra ? 1 : 0);
}

}  // namespace

NewCheckpoint::NewCheckpoint(fs::path directory, std::int64_t step, bool force)
    : path_(checked(std::move(directory), step, force)),
      made_directory_(!there(path_)),
      directory_(path_, /*max_to_keep=*/0),
      step_(step) {
  try {
    directory_.check_writable();
    lock_ = io::DirectoryLock::take(path_, kTimeout);
    folder_ = directory_.begin(step);
  } catch (const Error&) {
    discard();
    throw;
  }
}

NewCheckpoint::~NewCheckpoint() {
  if (!published_) discard();
}

void NewCheckpoint::discard() noexcept {
  try {
    if (lock_ != nullptr && !lock_->is_current()) return;  // the directory is another job's now
    if (!folder_.empty()) io::remove_path(folder_);
    if (!made_directory_) return;
    std::error_code not_empty;
    if (lock_ != nullptr) fs::remove(path_ / io::DirectoryLock::kFile, not_empty);
    fs::remove(path_, not_empty);
  } catch (const std::exception& error) {
    log::warn("{}", error.what());
  }
}

void NewCheckpoint::write(const std::vector<io::PartArray>& arrays, int parts,
                          const std::function<void(io::PartArray& rows)>& rows_of) {
  for (int part = 0; part < parts; ++part) {
    std::vector<io::PartArray> mine;
    for (io::PartArray array : arrays) {
      cut(array, static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(parts));
      const bool has_none = array.shape[0] == 0 && part == 0;  // an array without rows has to be somewhere
      if (array.rows == 0 && !has_none) continue;
      if (array.which == io::kValue) rows_of(array);
      mine.push_back(std::move(array));
    }
    write_part(part, parts, mine);
  }
}

void NewCheckpoint::write_part(int part, int parts, const std::vector<io::PartArray>& arrays) {
  parts_.push_back(io::write_part(folder_ / io::part_file_name(part, parts), arrays));
}

fs::path NewCheckpoint::publish(const io::PublishOptions& options) {
  lock_->require_current();
  fs::path final = directory_.publish(step_, parts_, options);
  published_ = true;
  return final;
}

}  // namespace capstan::launch::checkpoint
