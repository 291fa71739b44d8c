// split_dataset.hpp -- data handed out by the coordinator in splits, so that each example counts once an
// epoch.
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

/// A description of some examples, small enough to be an argument of a closure; the worker that runs it reads
/// them. Of examples that are numbered [begin, end) are numbers, of a file its bytes.
struct DataSplit {
  std::int64_t epoch = 0;
  std::int64_t index = 0;  ///< among `count`, the same examples in every epoch
  std::int64_t count = 1;  ///< splits an epoch
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string file = {};  ///< empty where examples are numbered

  std::int64_t size() const noexcept { return end - begin; }
  friend bool operator==(const DataSplit&, const DataSplit&) = default;
};

struct SplitOptions {
  /// Of numbered examples; the last split may be smaller. A split is lost with its worker as a whole, and
  /// costs one closure: a split that takes 10 ms or more is a good one.
  std::int64_t examples_per_split = 1000;
  /// Of files; 0: each file is one split. Else a file of text is cut into so many bytes, and
  /// text_lines(split) reads the lines that begin in it.
  std::int64_t bytes_per_split = 0;
  /// How often each example is to count; -1: without an end.
  std::int64_t epochs = 1;
  /// The order of splits follows from it and from the number of the epoch, on every machine. None: the order
  /// of the data, in every epoch.
  std::optional<std::uint64_t> shuffle_seed = {};
  /// Name of its position in checkpoints, by the rules for variables; empty: "splits", "splits-2", ... in the
  /// order of their creation.
  std::string name = {};
};

/// Which splits are done, and what is handed out next. Made by ClusterCoordinator::create_split_dataset, and
/// used by the thread that made the strategy. A cheap value: copies are the same.
///
/// A split is done when its function has returned, and everything that this pushed has been applied: each
/// push of it counts once, however many workers died (see ClusterCoordinator). A split whose function threw,
/// or was cancelled, is not done and handed out again; what it pushed before it threw counts as well.
///
/// Checkpoints that a CheckpointManager of the strategy saves hold the position; restore_latest() sets it, so
/// make the dataset before.
class CAPSTAN_API SplitDataset {
 public:
  /// fn(split, args...) for each split of an epoch that is not done and not under way; of the next epoch when
  /// there is none. Empty when all epochs are handed out. Blocks and throws as ClusterCoordinator::schedule.
  template <auto fn, class... Args>
  std::vector<RemoteValue<detail::ResultOf<fn>>> schedule_each(const Args&... args) {
    return schedule_some<fn>(splits_per_epoch(), args...);
  }
  /// The same for `count` splits at most.
  template <auto fn, class... Args>
  std::vector<RemoteValue<detail::ResultOf<fn>>> schedule_some(std::int64_t count, const Args&... args) {
    std::vector<RemoteValue<detail::ResultOf<fn>>> values;
    for (const DataSplit& split : next(count)) {
      values.emplace_back(
          add(split, detail::Registered<fn>::number, detail::pack_arguments<fn>(split, args...)));
    }
    return values;
  }

  /// Every split of every epoch is done.
  bool done() const;
  /// Whose splits are handed out next; `epochs` of the options when there is none left.
  std::int64_t epoch() const;
  std::int64_t splits_per_epoch() const;
  std::int64_t splits_done(std::int64_t epoch) const;
  /// In the order in which an epoch hands them out.
  std::vector<DataSplit> splits(std::int64_t epoch) const;

  /// Which splits are done, at this moment: a JSON object.
  std::string position() const;
  /// Goes on from there: what is done is not handed out. Throws Error: invalid_argument for a text that is
  /// none, failed_precondition for one of data that were cut in another way, or while splits are under way.
  void restore(const std::string& position);

  /// For the layers above; not for programs.
  explicit SplitDataset(std::shared_ptr<coordinator::SplitKeeper> keeper) : keeper_(std::move(keeper)) {}

 private:
  std::vector<DataSplit> next(std::int64_t count) const;
  std::shared_ptr<const coordinator::Result> add(const DataSplit& split, std::uint32_t function,
                                                 detail::PackedArguments arguments);

  std::shared_ptr<coordinator::SplitKeeper> keeper_;
};

/// The examples of a split, of a pipeline that has them all, in the same order each time it is read. Those
/// before are read and passed over: with text files DataSplit::file is better, and where an example is made
/// of its number, Dataset::range(split.begin, split.end).map(...).
template <class T>
Dataset<T> examples_of(const Dataset<T>& dataset, const DataSplit& split) {
  return dataset.skip(split.begin).take(split.size());
}
/// The lines that begin in a split of a file. Throws as text_lines of a file; Error(invalid_argument) from
/// the iterator for a part of a gzip file.
CAPSTAN_API Dataset<std::string> text_lines(const DataSplit& split);

}  // namespace capstan
