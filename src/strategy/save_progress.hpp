// save_progress.hpp -- which ps have written their files of the checkpoint that is being saved.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "transport/fabric.hpp"

namespace capstan::strategy {

/// One save at a time. Any thread.
class SaveProgress {
 public:
  /// `last`: the number of the last save that another process may have begun.
  explicit SaveProgress(std::uint64_t last) : number_(last) {}

  /// Returns the number of a new save by so many ps; reports about earlier ones are ignored from now on.
  /// REQUIRES: no save is in progress, unless its caller repeats it.
  std::uint64_t begin(int ps_count);
  /// A save has begun, and neither `take_parts` nor `give_up` has ended it.
  bool in_progress() const;
  /// Handler of kShardsSaved.
  void take(const transport::Message& message);
  /// The ps has died before it had written its file.
  void lose(int ps, const std::string& name);
  /// Ends the save: the caller no longer waits for it.
  void give_up();

  /// Every ps has written its file, or there is an error.
  bool settled() const;
  /// Every ps has written to the fast level, where the coordinator sees it, or one ps will not.
  bool fast_settled() const;
  /// The files there; nothing unless they are complete, or once the files in the directory are complete as
  /// well.
  std::optional<std::vector<io::PartReport>> fast_parts() const;
  /// Indices of the ps that have not written their files.
  std::vector<int> missing() const;
  /// Ends the save and returns its files. Throws the first error. REQUIRES: settled().
  std::vector<io::PartReport> take_parts();

 private:
  mutable std::mutex mutex_;
  std::uint64_t number_;
  bool in_progress_ = false;
  int ps_count_ = 0;
  std::map<int, std::vector<io::PartReport>> written_;  // by ps
  std::map<int, std::vector<io::PartReport>> fast_;
  std::set<int> ended_;  // ps that report nothing more
  std::optional<Error> error_;
};

}  // namespace capstan::strategy
