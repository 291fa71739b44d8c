// checkpoint_directory.hpp -- the folder of all checkpoints of a run, as the coordinator keeps it.
//
//   directory.check_writable();                            before training starts
//   folder = directory.begin(step);                        -> <directory>/checkpoint-00000012.tmp
//   report = write_part(folder / part_file_name(ps, n), arrays);     on every ps
//   directory.publish(step, reports, {...});               -> <directory>/checkpoint-00000012
//
// docs/checkpoint_format.md describes the files. One thread at a time, and one job per directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"
#include "io/hdf5/manifest.hpp"

namespace capstan::io {

/// What the caller wants to find again. Texts are JSON.
struct PublishOptions {
  std::string user_state = "null";                    // any value: epoch, random state, dataset positions
  std::string settings = "{}";                        // an object: the settings that the run was started with
  std::map<std::string, std::string> positions = {};  // where things stand, by name
  std::map<std::string, std::int64_t> counters = {};  // values, by name; no JSON
  std::optional<Base> base = {};                      // of an increment
  std::filesystem::path bases = {};                   // where that lies; empty: in the same directory
};

struct CheckpointEntry {
  std::int64_t step = 0;
  std::filesystem::path path;
};

/// Every checkpoint below `directory` that was published, by step. Damage shows only when one is opened.
/// A directory that does not exist has none.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& directory);

class CheckpointDirectory {
 public:
  /// `max_to_keep` 0 keeps all; of the others one every so many hours (KeptCheckpoints), 0 none. Touches no
  /// file.
  explicit CheckpointDirectory(std::filesystem::path directory, int max_to_keep = 5,
                               double keep_every_n_hours = 0);

  /// Creates the directory where it is missing, then creates, fsyncs and removes a probe file. Hours count
  /// from now on where nothing has counted them yet. Throws Error permission_denied (resource_exhausted when
  /// the disk is full).
  void check_writable() const;

  /// Makes an empty folder for the parts of `step` and removes what a crashed save left behind.
  std::filesystem::path begin(std::int64_t step);

  /// Checks that the parts hold every row of every array once, writes master and manifest, makes all of it
  /// durable, gives it its final name, points `latest` at it and only then deletes the oldest beyond
  /// `max_to_keep`, but for bases of increments that stay. An existing checkpoint of the same step is
  /// replaced, and stays beside it as long as there are increments on it. Returns the final folder. After an
  /// Error, or a crash at any instruction, every earlier checkpoint is as it was.
  std::filesystem::path publish(std::int64_t step, std::span<const PartReport> parts,
                                const PublishOptions& options = {});

  /// The second half of it: the folder `whole`, on the same file system, has all files of the checkpoint.
  std::filesystem::path put_in_place(std::int64_t step, const std::filesystem::path& whole);

  /// By step, oldest first.
  std::vector<CheckpointEntry> list() const { return list_checkpoints(directory_); }
  std::optional<CheckpointEntry> latest() const;

  const std::filesystem::path& path() const noexcept { return directory_; }

  /// Called by `publish` before each of its steps with the step's name. What it throws ends the save at this
  /// point, as a crash would. For tests.
  void on_publish_step(std::function<void(std::string_view)> hook) { hook_ = std::move(hook); }

 private:
  void step_done(std::string_view next) const;
  void move_into_place(const std::filesystem::path& from, const std::filesystem::path& to) const;
  std::vector<CheckpointEntry> beyond_those_to_keep(std::int64_t newest) const;
  void delete_oldest(std::int64_t newest) const;

  std::filesystem::path directory_;
  int max_to_keep_;
  double keep_every_n_hours_;
  std::function<void(std::string_view)> hook_;
};

}  // namespace capstan::io
