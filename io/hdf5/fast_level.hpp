// fast_level.hpp -- the first of two levels: where checkpoints lie until they are in their directory.
//
//   place = fast.begin(step);           -> <base>/checkpoints-<hash>/checkpoint-00000012.tmp
//   ... every ps writes its part there, and copies it to the checkpoint directory ...
//   fast.publish(step, parts, {...});   when all are there: it counts after a crash of the job
//   fast.clear();                       when the checkpoint is in the checkpoint directory
//   fast.rescue(directory);             in the next job
//
// docs/checkpointing.md#two-levels says what it promises. Only `rescue` fails: a save goes on without.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "io/hdf5/fast_directory.hpp"

namespace capstan::io {

/// Where a ps writes its part first.
struct FastPlace {
  std::filesystem::path folder = {};  // empty: there is no fast level
  /// What the file kOwnerFile beside the folder says, if it is the coordinator's own; empty: the coordinator
  /// has none.
  std::string owner = {};
};

/// In the folder of one checkpoint directory's fast checkpoints: the number in kFastLevelFile, one of the
/// process that saves, and the checkpoint directory.
inline constexpr const char* kOwnerFile = "owner";
/// In a checkpoint directory: a number that says which fast checkpoints are its own.
inline constexpr const char* kFastLevelFile = "fast-level";

/// Of one checkpoint directory, as the coordinator keeps it. One thread at a time.
class FastLevel {
 public:
  /// `base` is --checkpoint-fast-dir; empty: there is none, and what an earlier job left in one does not
  /// count any more when a checkpoint has been saved without. Touches no file. Throws Error invalid_argument
  /// when it is not absolute.
  FastLevel(std::filesystem::path base, std::filesystem::path directory);

  explicit operator bool() const noexcept { return !base_.empty(); }

  /// Removes what a crashed save left behind, and makes a folder for the parts of `step`. Where that cannot
  /// be made the log says so, once; those of other hosts may be.
  FastPlace begin(std::int64_t step);
  /// All parts lie in the folder of `begin`, seen from here: now it is a checkpoint, the only one there.
  /// False when it could not be, which the log says.
  bool publish(std::int64_t step, std::span<const PartReport> parts, const PublishOptions& options);
  /// The newest checkpoint is in the checkpoint directory: nothing is needed here.
  void clear() noexcept;
  /// At the end of a job. A checkpoint that did not reach the checkpoint directory stays.
  void leave() noexcept;

  /// Brings a whole checkpoint that is newer than all of `directory` there. One that is damaged is passed
  /// over, with a word in the log. Returns its step. Throws Error: resource_exhausted and the like when it
  /// cannot be written.
  std::optional<std::int64_t> rescue(CheckpointDirectory& directory);

  /// Of this checkpoint directory, below `base`.
  const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::string owner_text() const;
  bool owner_is_ours() const;
  /// Nothing when there is none, when it is of another checkpoint directory, or when another user could have
  /// put it there, which the log says once.
  std::optional<FastDirectory> ours() noexcept;
  void warn_once(const std::exception& error) noexcept;

  std::filesystem::path base_;
  std::filesystem::path directory_;
  std::filesystem::path folder_;
  std::string process_;
  bool warned_ = false;
};

}  // namespace capstan::io
