// new_checkpoint.hpp -- a checkpoint that a subcommand writes: all of it or nothing.
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

/// One thread at a time.
class NewCheckpoint {
 public:
  /// Makes `directory` where it is missing, and keeps jobs out of it until the end. Throws Error:
  /// already_exists when it has a checkpoint of this step, unless `force`; failed_precondition when a job
  /// writes there; invalid_argument when it is a checkpoint itself; permission_denied, resource_exhausted.
  NewCheckpoint(std::filesystem::path directory, std::int64_t step, bool force);
  NewCheckpoint(const NewCheckpoint&) = delete;
  NewCheckpoint& operator=(const NewCheckpoint&) = delete;
  /// Removes what was not published.
  ~NewCheckpoint();

  /// Writes whole `arrays` in `parts` parts, cut as evenly as rows allow. Their `read` is called for each row
  /// once, in order, over all parts. `rows_of` may fill in, for a `value`, what depends on its rows.
  void write(const std::vector<io::PartArray>& arrays, int parts,
             const std::function<void(io::PartArray& rows)>& rows_of);

  /// One part of so many; the others have to follow. Arrays are those of its rows.
  void write_part(int part, int parts, const std::vector<io::PartArray>& arrays);

  /// Returns its folder.
  std::filesystem::path publish(const io::PublishOptions& options);

 private:
  void discard() noexcept;

  std::filesystem::path path_;
  bool made_directory_;
  io::CheckpointDirectory directory_;
  std::int64_t step_;
  std::shared_ptr<const io::DirectoryLock> lock_;
  std::filesystem::path folder_;
  std::vector<io::PartReport> parts_;
  bool published_ = false;
};

}  // namespace capstan::launch::checkpoint
