// retained_checkpoints.hpp -- checkpoints that are kept for good: one every `keep_every_n_hours`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

namespace capstan::io {

/// The file kept.json of a checkpoint directory, which persists across runs. TensorFlow's rule: an expired
/// checkpoint is retained if it was saved `hours` or more after the last retained one, or, if there is none,
/// after the first `start` in this directory.
class RetainedCheckpoints {
 public:
  /// Reads the file. Treats a missing or malformed file as empty, and logs a warning if it is malformed.
  explicit RetainedCheckpoints(std::filesystem::path directory);

  bool contains(const std::string& name) const { return names_.contains(name); }
  /// Starts counting the hours, unless they are counted already. Call before the first save.
  void start();
  /// Returns true, and records it in the file, if this checkpoint is to be retained.
  bool retain(const std::string& name, double hours);
  /// Returns the time of a save, in seconds since the epoch: the mtime of the manifest.
  static double saved_at(const std::filesystem::path& checkpoint);

 private:
  void write() const;

  std::filesystem::path directory_;
  std::set<std::string> names_;
  double last_ = 0;  // time of the last retained save; 0: not started
};

}  // namespace capstan::io
