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
  /// Subscribes to the reports that arrive at `control`. `last` is the highest number of a save that a
  /// previous process may have begun.
  SaveProgress(transport::Fabric& control, std::uint64_t last);

  /// Begins a save by `ps_count` ps and returns its number; later reports about earlier saves are ignored.
  /// REQUIRES: no save is in progress, except one that the caller repeats.
  std::uint64_t begin(int ps_count);
  /// Returns true between `begin` and `take_parts` or `give_up`.
  bool in_progress() const;
  /// Records the death of a ps; fails a save that still waits for this ps's files.
  void note_death(int ps, const std::string& name);
  /// Ends the save with Error(cancelled).
  void give_up();

  /// Returns true once every ps has written its files, one has failed, or the save was given up.
  bool settled() const;
  /// Returns true once every ps has reported its files on the fast level, or a ps has finished or died
  /// without that report.
  bool fast_settled() const;
  /// Returns the files on the fast level; nullopt if a ps has not reported its own, or if all files are in
  /// the checkpoint's directory already.
  std::optional<std::vector<io::PartReport>> fast_parts() const;
  /// Returns the indices of the ps that have not written their files.
  std::vector<int> missing() const;
  /// Ends the save and returns its files. Throws the first error. REQUIRES: settled().
  std::vector<io::PartReport> take_parts();

 private:
  void receive(const transport::Message& message);

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
