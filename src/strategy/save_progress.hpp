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

/// One save at a time. Any thread, but for the constructor and the destructor.
class SaveProgress {
 public:
  /// Receives the reports that arrive at `control`. `last`: the number of the last save that another process
  /// may have begun.
  SaveProgress(transport::Fabric& control, std::uint64_t last);

  /// Returns the number of a new save by `ps_count` ps. Ignores reports about earlier saves from now on.
  /// REQUIRES: no save is in progress, unless its caller repeats it.
  std::uint64_t begin(int ps_count);
  /// Returns true between `begin` and `take_parts` or `give_up`.
  bool in_progress() const;
  /// The ps died; ends a save that waits for its file.
  void lose(int ps, const std::string& name);
  /// Ends the save with Error(cancelled).
  void give_up();

  /// Returns true once every ps has written its file or one has failed.
  bool settled() const;
  /// Returns true once every ps has written a file that the coordinator can read on the fast level, or one ps
  /// will not.
  bool fast_settled() const;
  /// Returns the files on the fast level; nullopt if one is missing, or if the files in the directory are
  /// complete, too.
  std::optional<std::vector<io::PartReport>> fast_parts() const;
  /// Indices of the ps that have not written their files.
  std::vector<int> missing() const;
  /// Ends the save and returns its files. Throws the first error. REQUIRES: settled().
  std::vector<io::PartReport> take_parts();

 private:
  void take(const transport::Message& message);

  mutable std::mutex mutex_;
  std::uint64_t number_;
  bool in_progress_ = false;
  int ps_count_ = 0;
  std::map<int, std::vector<io::PartReport>> written_;  // by ps
  std::map<int, std::vector<io::PartReport>> fast_;
  std::set<int> ended_;  // ps that send no more reports
  std::optional<Error> error_;
  transport::Subscriptions subscriptions_;  // last: its handler uses the above
};

}  // namespace capstan::strategy
