// coordinator.hpp -- ClusterCoordinator: functions that run on whichever worker is free.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/cluster.hpp"
#include "capstan/dataset.hpp"
#include "capstan/detail/coordinator_statistics.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/detail/per_worker.hpp"
#include "capstan/detail/remote_function.hpp"
#include "capstan/detail/remote_value.hpp"
#include "capstan/detail/split_dataset.hpp"
#include "capstan/strategy.hpp"

namespace capstan {

namespace coordinator {
class Coordinator;
}

namespace detail {

template <auto fn>
using IteratorOf = Iterator<typename ResultOf<fn>::Element>;

/// fn, with the iterator of the dataset that it makes as its result.
template <auto fn, class Arguments = ArgumentsOf<fn>>
struct MakeIterator;
template <auto fn, class... Args>
struct MakeIterator<fn, std::tuple<Args...>> {
  static IteratorOf<fn> call(Args... args) { return fn(std::move(args)...); }
};
template <class T>
Iterator<T> open_dataset(const Dataset<T>& dataset) {
  return dataset.make_iterator();
}

/// A function object, called where its first argument has come to.
template <class F, class Arguments = typename Signature<F>::Arguments>
struct CallObject;
template <class F, class... Args>
struct CallObject<F, std::tuple<Args...>> {
  static typename Signature<F>::Result call(Carried<F> object, Args... args) {
    return object.function(std::move(args)...);
  }
};
template <class F>
constexpr void require_portable() {
  if constexpr (!Portable<F>) static_assert(!not_portable<F>);
}

}  // namespace detail

struct ScheduleOptions {
  /// The higher goes first; of equals the one that was scheduled first. What a worker holds already is not
  /// overtaken.
  int priority = 0;
  /// The worker that shall run it, unless that one is lost, or is busy while another has nothing to do.
  std::optional<int> affinity = {};
  /// Counted from schedule. A function that has not ended by then fails with deadline_exceeded, as if it had
  /// thrown that: if it has not begun it never does, and if it runs its result is dropped and it is cancelled
  /// (capstan/cancellation.hpp). What it had pushed is applied; its worker is free again when it ends. One
  /// that lies beyond the range of the clock is none.
  std::optional<std::chrono::milliseconds> deadline = {};
};

/// Whether a rank is there.
struct TaskState {
  Role role = Role::worker;
  int index = 0;
  bool lost = false;  ///< a worker until it has been started again, a ps until it, or a spare, is there
  std::string name;   ///< "ps 1 (rank 2 on node17)"; "spare 0 (rank 6 on node3), now ps 1"
};

/// One of `count` parts of something, for schedule_each: dataset.shard(split.count, split.index).
struct Split {
  std::int64_t index = 0;
  std::int64_t count = 1;
};
/// All of them. Throws Error(invalid_argument) for a count below 0.
CAPSTAN_API std::vector<Split> splits(std::int64_t count);

/// Schedules functions on workers. Used by the thread that made the strategy. Several of one strategy are the
/// same coordinator.
///
/// Errors are raised as in TensorFlow: the first one is kept, what has not begun never does, what runs is
/// cancelled (capstan/cancellation.hpp) and awaited, and the next schedule, join or done throws it once;
/// after that everything is usable again. A closure whose worker dies runs again on another; what it had
/// pushed before is not applied again, so each push counts once if both runs push the same things in the same
/// order. When a ps dies, schedule, join and done throw Error(unavailable) naming it, at once and every time.
class CAPSTAN_API ClusterCoordinator {
 public:
  /// Throws Error(failed_precondition) when an earlier one of this strategy has ended, and with it the
  /// workers.
  explicit ClusterCoordinator(ParameterServerStrategy& strategy);
  ~ClusterCoordinator();
  ClusterCoordinator(const ClusterCoordinator&) = delete;
  ClusterCoordinator& operator=(const ClusterCoordinator&) = delete;

  /// Queues fn(args...) and returns. Blocks while the queue is full (--queue-limit). Arguments are converted
  /// to the parameters' types and copied. What fn pushes has been applied when it counts as done.
  ///
  /// An argument may be a RemoteValue of this coordinator, also in a vector, pair, tuple or map: fn waits for
  /// it without being in the way of others, and runs where it was made if that worker is free. Its error is
  /// fn's as well.
  template <auto fn, class... Args>
  RemoteValue<detail::ResultOf<fn>> schedule(Args&&... args) {
    return RemoteValue<detail::ResultOf<fn>>(
        add(detail::Registered<fn>::number, detail::pack_arguments<fn>(std::forward<Args>(args)...)));
  }

  /// The same with a priority, a worker or a deadline. Throws Error(out_of_range) for a worker that was never
  /// there.
  template <auto fn, class... Args>
  RemoteValue<detail::ResultOf<fn>> schedule_with(const ScheduleOptions& options, Args&&... args) {
    return RemoteValue<detail::ResultOf<fn>>(add_with(
        options, detail::Registered<fn>::number, detail::pack_arguments<fn>(std::forward<Args>(args)...)));
  }

  /// fn(split, args...) for each of `splits`: of a range of anything, a Dataset too. In their order.
  template <auto fn, class Range, class... Args>
  std::vector<RemoteValue<detail::ResultOf<fn>>> schedule_each(const Range& splits, const Args&... args) {
    std::vector<RemoteValue<detail::ResultOf<fn>>> values;
    for (const auto& split : splits) values.push_back(schedule<fn>(split, args...));
    return values;
  }

  /// The same on the worker of that index, for what only it can do: it goes before what any worker may run,
  /// and stands apart from it. join and done do not wait for it, an error of it is thrown by fetch alone, and
  /// so is Error(aborted) when the worker is or gets lost. Throws Error(out_of_range) for a worker that was
  /// never there.
  template <auto fn, class... Args>
  RemoteValue<detail::ResultOf<fn>> schedule_on(int worker, Args&&... args) {
    return RemoteValue<detail::ResultOf<fn>>(add_for(
        worker, detail::Registered<fn>::number, detail::pack_arguments<fn>(std::forward<Args>(args)...)));
  }
  /// fn(args...) once on each worker that is there, and what it returned, in the order of worker_indices(). A
  /// worker that dies meanwhile is left out. Waits, also behind what these workers are running.
  template <auto fn, class... Args>
  std::vector<detail::ResultOf<fn>> run_on_every_worker(const Args&... args) {
    std::vector<std::pair<int, RemoteValue<detail::ResultOf<fn>>>> scheduled;
    for (const int worker : worker_indices()) {
      scheduled.emplace_back(worker, schedule_on<fn>(worker, args...));
    }
    std::vector<detail::ResultOf<fn>> results;
    for (const auto& [worker, value] : scheduled) {
      try {
        results.push_back(value.fetch());
      } catch (const Error& error) {
        if (error.code() != Code::aborted || !has_lost(worker)) throw;
      }
    }
    return results;
  }

  /// Waits until everything scheduled is done.
  void join();
  /// The same, but gives up waiting after `timeout`; true when everything is done.
  bool join(std::chrono::milliseconds timeout);
  /// Everything scheduled is done.
  bool done();

  /// With --coordinator-wait: a coordinator that is killed from now on finds `step` as
  /// Cluster::recorded_step() and goes on after it; what is scheduled in the same order then counts exactly
  /// once, however much of it had run before. Waits as join does, and throws what join throws. REQUIRES:
  /// nothing of schedule_on is under way. Once in 50,000 functions at least: after more a coordinator that is
  /// killed has to restore a checkpoint.
  void record_step(std::int64_t step);

  /// A value of the program's at one of its steps: the loss, an accuracy. With --run-dir it is in TensorBoard
  /// and in metrics.jsonl (docs/metrics.md); without, this does nothing. Any thread.
  void scalar(const std::string& name, double value, std::int64_t step);

  /// The value; of a vector, pair, tuple or map that has RemoteValues in it the same with values in their
  /// place; anything else as it is. Waits, and throws what RemoteValue::fetch throws.
  template <class Nest>
  auto fetch(const Nest& nest) {
    return detail::fetched(nest);
  }

  /// fn(args...) makes one object on each worker, when a closure first uses it there. An Error in fn is that
  /// closure's. The result may be of any type; what an argument names, as a PerWorker does, lives as long as
  /// the object.
  template <auto fn, class... Args>
  PerWorker<detail::ResultOf<fn>> create_per_worker_resource(Args&&... args) {
    return PerWorker<detail::ResultOf<fn>>(add_resource(
        detail::RegisteredMaker<fn>::number, detail::pack_arguments<fn>(std::forward<Args>(args)...)));
  }
  /// The same for a function that returns an Iterator<T>, or a Dataset<T> or another thing that says with
  /// `Element` of what it is an iterator: each worker gets an iterator of its own. A new dataset in the place
  /// of an old one, data = coordinator.create_per_worker_dataset..., frees the old iterators.
  template <auto fn, class... Args>
  PerWorker<detail::IteratorOf<fn>> create_per_worker_dataset(Args&&... args) {
    if constexpr (std::is_same_v<detail::IteratorOf<fn>, detail::ResultOf<fn>>) {
      return create_per_worker_resource<fn>(std::forward<Args>(args)...);
    } else {
      return create_per_worker_resource<&detail::MakeIterator<fn>::call>(std::forward<Args>(args)...);
    }
  }
  /// The same with a function object: one without a state, as a lambda that captures nothing, or one whose
  /// state can be serialized, as a struct of numbers and strings. A function is named as a template argument.
  template <class F, class... Args>
  auto create_per_worker_dataset(F make, Args&&... args) {
    if constexpr (detail::Portable<F>) {
      return create_per_worker_dataset<&detail::CallObject<F>::call>(detail::Carried<F>(std::move(make)),
                                                                     std::forward<Args>(args)...);
    } else {
      detail::require_portable<F>();
    }
  }
  /// The same with a dataset. Each worker makes it again from its description and reads it with an iterator
  /// of its own: from vectors, ranges, arrays and the readers of files, by the operators of Dataset. Throws
  /// Error(invalid_argument), which names the operator, for one that has a function with captures: a function
  /// that makes the dataset on each worker can do that.
  template <class T>
  PerWorker<Iterator<T>> create_per_worker_dataset(const Dataset<T>& dataset) {
    return create_per_worker_resource<&detail::open_dataset<T>>(dataset);
  }

  /// Examples 0 to examples - 1, handed out in splits of which each counts once an epoch. See SplitDataset.
  /// Throws Error: invalid_argument for sizes and counts that make no sense, already_exists for the name.
  SplitDataset create_split_dataset(std::int64_t examples, const SplitOptions& options = {});
  /// The same with the elements of a dataset, which are counted by reading them once. The worker makes the
  /// dataset and takes examples_of(dataset, split). Throws Error(invalid_argument) when it repeats without an
  /// end.
  template <class T>
  SplitDataset create_split_dataset(const Dataset<T>& dataset, const SplitOptions& options = {}) {
    return create_split_dataset(dataset.count(), options);
  }
  /// The same with the files as splits, or with parts of them. The coordinator looks at their sizes; workers
  /// read them under the same names. Throws Error(not_found) as well.
  SplitDataset create_split_dataset(const data::Paths& files, const SplitOptions& options = {});
  /// Of every rank but the coordinator, in the order of ranks. A rank that dies is noticed at once, whether a
  /// function has to do with it or not. Any thread.
  std::vector<TaskState> task_states() const;
  /// Workers that are there now.
  int workers() const;
  /// Counts and times since the coordinator's start. Any thread.
  CoordinatorStatistics statistics() const;
  /// Which they are: 0 to workers() - 1 as long as none has died.
  std::vector<int> worker_indices() const;

 private:
  std::shared_ptr<const coordinator::Result> add(std::uint32_t function, detail::PackedArguments arguments);
  std::shared_ptr<const coordinator::Result> add_with(const ScheduleOptions& options, std::uint32_t function,
                                                      detail::PackedArguments arguments);
  std::shared_ptr<const coordinator::Result> add_for(int worker, std::uint32_t function,
                                                     detail::PackedArguments arguments);
  bool has_lost(int worker) const;
  detail::ResourceHandle add_resource(std::uint32_t function, detail::PackedArguments arguments);

  std::shared_ptr<coordinator::Coordinator> implementation_;  // one for all of a strategy
};

/// The number of the worker that runs the calling closure. Throws Error(failed_precondition) elsewhere.
CAPSTAN_API int current_worker_index();

}  // namespace capstan
