// new_checkpoint.cpp -- writes a checkpoint like that of a job, from a single process.
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

/// Time limit for the directory lock, which an ending job may still hold.
constexpr std::chrono::milliseconds kTimeout{3'000};

bool path_exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

fs::path validated(fs::path directory, std::int64_t step, bool force) {
  if (is_checkpoint(directory)) {
    throw Error(Code::invalid_argument,
                fmt::format("{} is a checkpoint, expected a directory for checkpoints", directory.string()));
  }
  if (force) return directory;
  for (const io::CheckpointEntry& entry : io::list_checkpoints(directory)) {
    if (entry.step != step) continue;
    throw Error(Code::already_exists,
                fmt::format("{} already exists; choose another directory or replace it with --force",
                            entry.path.string()));
  }
  return directory;
}

/// Assigns the rows of part `index`. If the rows do not divide evenly, the first parts get one row more.
void assign_rows(io::PartArray& array, std::uint64_t index, std::uint64_t parts) {
  const std::uint64_t each = array.shape[0] / parts, extra = array.shape[0] % parts;
  array.first_row = index * each + std::min(index, extra);
  array.rows = each + (index < extra ? 1 : 0);
}

}  // namespace

NewCheckpoint::NewCheckpoint(fs::path directory, std::int64_t step, bool force)
    : path_(validated(std::move(directory), step, force)),
      created_directory_(!path_exists(path_)),
      directory_(path_, /*max_to_keep=*/0),
      step_(step) {
  try {
    directory_.check_writable();
    lock_ = io::DirectoryLock::take(path_, kTimeout);
    staging_ = directory_.begin(step);
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
    if (lock_ != nullptr && !lock_->is_current())
      return;  // the directory was replaced, so its content belongs to another job
    if (!staging_.empty()) io::remove_path(staging_);
    if (!created_directory_) return;
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
    std::vector<io::PartArray> part_arrays;
    for (io::PartArray array : arrays) {
      assign_rows(array, static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(parts));
      const bool is_empty_array = array.shape[0] == 0 && part == 0;  // an array without rows goes into part 0
      if (array.rows == 0 && !is_empty_array) continue;
      if (array.component == io::kValue) rows_of(array);
      part_arrays.push_back(std::move(array));
    }
    write_part(part, parts, part_arrays);
  }
}

void NewCheckpoint::write_part(int part, int parts, const std::vector<io::PartArray>& arrays) {
  parts_.push_back(io::write_part(staging_ / io::part_file_name(part, parts), arrays));
}

fs::path NewCheckpoint::publish(const io::PublishOptions& options) {
  lock_->require_current();
  fs::path final = directory_.publish(step_, parts_, options);
  published_ = true;
  return final;
}

}  // namespace capstan::launch::checkpoint
