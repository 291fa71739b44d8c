// new_checkpoint.hpp -- a checkpoint that a subcommand writes and publishes atomically.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/directory_lock.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::launch::checkpoint {

/// A checkpoint in progress. Not thread-safe.
class NewCheckpoint {
 public:
  /// Creates `directory` if missing and holds its lock, which excludes jobs, until destruction. Throws Error:
  /// already_exists if it has a checkpoint of this step and `force` is not set; failed_precondition if a job
  /// holds the lock; invalid_argument if `directory` is a checkpoint; permission_denied, resource_exhausted.
  NewCheckpoint(std::filesystem::path directory, std::int64_t step, bool force);
  NewCheckpoint(const NewCheckpoint&) = delete;
  NewCheckpoint& operator=(const NewCheckpoint&) = delete;
  /// Unless published, removes the files, and also the directory if the constructor created it.
  ~NewCheckpoint();

  /// Writes complete `arrays` in `parts` parts of nearly equal numbers of rows. `read` of an array gets each
  /// row once, in order over all parts. `rows_of` is called for each part of a value, to set the fields that
  /// depend on its rows.
  void write(const std::vector<io::PartArray>& arrays, int parts,
             const std::function<void(io::PartArray& rows)>& rows_of);

  /// Writes part `part` of `parts`; the caller must write all of them. `arrays` hold the rows of this part.
  void write_part(int part, int parts, const std::vector<io::PartArray>& arrays);

  /// Makes the checkpoint visible and returns its directory. Throws Error(failed_precondition) if the lock
  /// was lost.
  std::filesystem::path publish(const io::PublishOptions& options);

 private:
  void discard() noexcept;

  std::filesystem::path path_;
  bool created_directory_;
  io::CheckpointDirectory directory_;
  std::int64_t step_;
  std::shared_ptr<const io::DirectoryLock> lock_;
  std::filesystem::path staging_;
  std::vector<io::PartReport> parts_;
  bool published_ = false;
};

}  // namespace capstan::launch::checkpoint
