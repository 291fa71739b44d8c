// kept_checkpoints.hpp -- checkpoints that are not deleted though newer ones come: one every so many hours.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

namespace capstan::io {

/// The file kept.json of a folder of checkpoints. TensorFlow's rule: when a checkpoint would be deleted, it
/// is kept instead if it was saved `hours` or more after the one that was kept last; before there is one,
/// after the rule was first asked for in this folder. That is remembered over any number of runs.
class KeptCheckpoints {
 public:
  /// Reads the file; one that is not there, or is none, holds nothing, which the log says of the latter.
  explicit KeptCheckpoints(std::filesystem::path directory);

  bool contains(const std::string& name) const { return names_.contains(name); }
  /// Is to be called before the first checkpoint is saved: from now on hours are counted.
  void start();
  /// True, and noted on disk, when that checkpoint is one to keep.
  bool keep(const std::string& name, double hours);
  /// When it was saved, in seconds since 1970: that is when its manifest was written.
  static double saved_at(const std::filesystem::path& checkpoint);

 private:
  void write() const;

  std::filesystem::path directory_;
  std::set<std::string> names_;
  double last_ = 0;  // when the last one that is kept was saved; 0: not started
};

}  // namespace capstan::io
