// split_dataset.hpp -- SplitDataset: the coordinator hands out data in splits, so that each example counts
// once per epoch.
//
//   auto data = coordinator.create_split_dataset(50'000, {.examples_per_split = 500, .epochs = 3});
//   while (!data.done()) {
//     data.schedule_each<&train_on>(w);  // train_on(split, w), for every split of an epoch
//     coordinator.join();
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capstan/dataset.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/detail/remote_function.hpp"
#include "capstan/detail/remote_value.hpp"

namespace capstan {

namespace coordinator {
class SplitKeeper;
}

/// A description of a range of examples, small enough to be a closure argument; the worker that runs the
/// closure reads them. [begin, end) are example numbers, or byte offsets of `file` where that is set.
struct DataSplit {
  std::int64_t epoch = 0;
  std::int64_t index = 0;  ///< in [0, count); denotes the same examples in every epoch
  std::int64_t count = 1;  ///< splits per epoch
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string file = {};  ///< empty for numbered examples

  std::int64_t size() const noexcept { return end - begin; }
  friend bool operator==(const DataSplit&, const DataSplit&) = default;
};

struct SplitOptions {
  /// Examples in a split, for numbered examples; the last split may be smaller. A split is the unit that is
  /// repeated when its worker dies, and costs one closure: choose a size that takes 10 ms or more.
  std::int64_t examples_per_split = 1000;
  /// Bytes in a split, for text files: text_lines(split) reads the lines that begin in it. 0: each file is
  /// one split.
  std::int64_t bytes_per_split = 0;
  /// Number of epochs, in each of which every example counts once; -1: endless.
  std::int64_t epochs = 1;
  /// Determines, with the epoch number, the order of splits, identically on every machine. None: the order of
  /// the data in every epoch.
  std::optional<std::uint64_t> shuffle_seed = {};
  /// Name of the position in checkpoints, by the rules for variable names. Empty: "splits", "splits-2", ...
  /// in the order of creation.
  std::string name = {};
};

/// Progress of an epoch-wise pass over the data: the splits that are done and the order of the others. Made
/// by ClusterCoordinator::create_split_dataset; used by the thread that made the strategy. A cheap value:
/// copies share one position.
///
/// A split is done when its function has returned and all of the function's pushes have been applied. Each
/// push counts once, however many workers died (see ClusterCoordinator). A split whose function threw or was
/// cancelled is handed out again; pushes made before the error remain applied.
///
/// CheckpointManager saves the position in each checkpoint of the strategy; restore_latest() restores it, so
/// create the dataset first.
class CAPSTAN_API SplitDataset {
 public:
  /// Schedules fn(split, args...) for each split of the current epoch that is neither done nor in progress.
  /// If there is none, schedules the splits of the next epoch. Returns no values once the splits of all
  /// epochs are handed out. Blocks and throws as ClusterCoordinator::schedule does.
  template <auto fn, class... Args>
  std::vector<RemoteValue<detail::ResultOf<fn>>> schedule_each(const Args&... args) {
    return schedule_some<fn>(splits_per_epoch(), args...);
  }
  /// As schedule_each, for at most `count` splits.
  template <auto fn, class... Args>
  std::vector<RemoteValue<detail::ResultOf<fn>>> schedule_some(std::int64_t count, const Args&... args) {
    std::vector<RemoteValue<detail::ResultOf<fn>>> values;
    for (const DataSplit& split : next(count)) {
      values.emplace_back(
          add(split, detail::Registered<fn>::number, detail::pack_arguments<fn>(split, args...)));
    }
    return values;
  }

  /// Returns whether every split of every epoch is done.
  bool done() const;
  /// Epoch of the next splits to hand out; SplitOptions::epochs once none is left.
  std::int64_t epoch() const;
  std::int64_t splits_per_epoch() const;
  std::int64_t splits_done(std::int64_t epoch) const;
  /// All splits of an epoch, in the order in which they are handed out.
  std::vector<DataSplit> splits(std::int64_t epoch) const;

  /// The splits that are done now, as a JSON object.
  std::string position() const;
  /// Resumes from a position: splits that it lists as done are not handed out. Throws Error: invalid_argument
  /// for malformed text; failed_precondition for a position of data that were split differently, or while
  /// splits are in progress.
  void restore(const std::string& position);

  /// Internal: for the layers above, not for programs.
  explicit SplitDataset(std::shared_ptr<coordinator::SplitKeeper> keeper) : keeper_(std::move(keeper)) {}

 private:
  std::vector<DataSplit> next(std::int64_t count) const;
  std::shared_ptr<const coordinator::Result> add(const DataSplit& split, std::uint32_t function,
                                                 detail::PackedArguments arguments);

  std::shared_ptr<coordinator::SplitKeeper> keeper_;
};

/// The examples of a split, from a pipeline that yields all examples in the same order each time. Reads and
/// discards the examples before the split: for text files prefer DataSplit::file, and for examples computed
/// from their number prefer Dataset::range(split.begin, split.end).map(...).
template <class T>
Dataset<T> examples_of(const Dataset<T>& dataset, const DataSplit& split) {
  return dataset.skip(split.begin).take(split.size());
}
/// The lines that begin in a split of a file. The iterator throws the errors of text_lines(files), and
/// Error(invalid_argument) if the split is only a part of a gzip file.
CAPSTAN_API Dataset<std::string> text_lines(const DataSplit& split);

}  // namespace capstan
