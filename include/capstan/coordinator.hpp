// coordinator.hpp -- ClusterCoordinator: schedules functions on workers.
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

/// Wraps fn, which makes a dataset, in a function that returns an iterator of this dataset.
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

/// Wraps a call of a function object, which is sent as the first argument.
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
  /// Closures with a higher priority run first, closures with equal priorities in the order of schedule. A
  /// closure does not overtake closures that a worker already holds.
  int priority = 0;
  /// Preferred worker; ignored if it is dead, or busy while another is idle.
  std::optional<int> affinity = {};
  /// Time limit, counted from schedule. A function that has not ended by then fails with deadline_exceeded,
  /// as if it had thrown that error. If it has not started, it never runs. If it is running, it is cancelled
  /// (capstan/cancellation.hpp) and its result is dropped; its earlier pushes remain applied, and its worker
  /// is busy until it ends. A deadline beyond the range of the clock has no effect.
  std::optional<std::chrono::milliseconds> deadline = {};
};

/// State of a rank.
struct TaskState {
  Role role = Role::worker;
  int index = 0;
  bool dead = false;  ///< of a worker: until its restart; of a ps: until it or a spare has recovered
  std::string name;   ///< "ps 1 (rank 2 on node17)"; "spare 0 (rank 6 on node3), now ps 1"
};

/// Number `index` of `count` parts, for schedule_each: dataset.shard(split.count, split.index).
struct Split {
  std::int64_t index = 0;
  std::int64_t count = 1;
};
/// All `count` splits. Throws Error(invalid_argument) for a count below 0.
CAPSTAN_API std::vector<Split> splits(std::int64_t count);

/// Schedules functions on workers. Used by the thread that made the strategy. Several objects for one
/// strategy share one coordinator.
///
/// Errors are raised as in TensorFlow: after the first error, queued functions are cancelled, running ones
/// are cancelled (capstan/cancellation.hpp) and awaited, and the next schedule, join or done throws the error
/// once; then everything is usable again. A closure whose worker dies runs again on another worker; its
/// earlier pushes are not applied again, so each push counts once if both runs push the same values in the
/// same order. When a ps dies, schedule, join and done throw Error(unavailable) naming it, immediately and
/// every time.
class CAPSTAN_API ClusterCoordinator {
 public:
  /// Throws Error(failed_precondition) if an earlier coordinator of this strategy was destroyed, which ended
  /// the workers.
  explicit ClusterCoordinator(ParameterServerStrategy& strategy);
  ~ClusterCoordinator();
  ClusterCoordinator(const ClusterCoordinator&) = delete;
  ClusterCoordinator& operator=(const ClusterCoordinator&) = delete;

  /// Queues fn(args...) and returns. Blocks while the queue is full (--queue-limit). Arguments are converted
  /// to the parameters' types and copied. When fn counts as done, its pushes have been applied.
  ///
  /// An argument may be, or contain in a vector, pair, tuple or map, a RemoteValue of this coordinator: fn
  /// then waits for it without blocking other functions, and prefers the worker that computed it. If the
  /// argument fails, fn fails with the same error.
  template <auto fn, class... Args>
  RemoteValue<detail::ResultOf<fn>> schedule(Args&&... args) {
    return RemoteValue<detail::ResultOf<fn>>(
        add(detail::Registered<fn>::number, detail::pack_arguments<fn>(std::forward<Args>(args)...)));
  }

  /// As above, with a priority, a preferred worker or a deadline. Throws Error(out_of_range) for a worker
  /// that never existed.
  template <auto fn, class... Args>
  RemoteValue<detail::ResultOf<fn>> schedule_with(const ScheduleOptions& options, Args&&... args) {
    return RemoteValue<detail::ResultOf<fn>>(add_with(
        options, detail::Registered<fn>::number, detail::pack_arguments<fn>(std::forward<Args>(args)...)));
  }

  /// Schedules fn(split, args...) for each element of `splits`, in order. `splits` is any range, or a
  /// Dataset.
  template <auto fn, class Range, class... Args>
  std::vector<RemoteValue<detail::ResultOf<fn>>> schedule_each(const Range& splits, const Args&... args) {
    std::vector<RemoteValue<detail::ResultOf<fn>>> values;
    for (const auto& split : splits) values.push_back(schedule<fn>(split, args...));
    return values;
  }

  /// Schedules fn(args...) on the given worker, ahead of closures for any worker, and separately: join and
  /// done do not wait for it, and only fetch throws its error, or Error(aborted) if the worker is dead or
  /// dies. Throws Error(out_of_range) for a worker that never existed.
  template <auto fn, class... Args>
  RemoteValue<detail::ResultOf<fn>> schedule_on(int worker, Args&&... args) {
    return RemoteValue<detail::ResultOf<fn>>(add_for(
        worker, detail::Registered<fn>::number, detail::pack_arguments<fn>(std::forward<Args>(args)...)));
  }
  /// Runs fn(args...) once on each live worker and returns the results in the order of worker_indices().
  /// Blocks until all calls are done, each of which waits for the closure that its worker is running. Omits a
  /// worker that dies meanwhile.
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

  /// Blocks until every scheduled function is done.
  void join();
  /// As above, for at most `timeout`. Returns true if every function is done.
  bool join(std::chrono::milliseconds timeout);
  /// Returns whether every scheduled function is done.
  bool done();

  /// With --coordinator-wait: records `step`. A coordinator that is restarted after this call returns it from
  /// Cluster::recorded_step(), and resumes after it. Functions that it schedules in the same order then count
  /// exactly once, even if some ran before the restart. Blocks and throws as join does. REQUIRES: no
  /// schedule_on call in progress. Call it at least once per 50,000 functions: after more of them, a
  /// restarted coordinator must restore a checkpoint.
  void record_step(std::int64_t step);

  /// Records a value of the program at one of its steps, such as the loss or accuracy. With --run-dir it is
  /// written to TensorBoard and metrics.jsonl (docs/metrics.md); otherwise this has no effect. Any thread.
  void scalar(const std::string& name, double value, std::int64_t step);

  /// Returns a copy of `nest` in which each RemoteValue, also within a vector, pair, tuple or map, is
  /// replaced by its value. Blocks and throws as RemoteValue::fetch does.
  template <class Nest>
  auto fetch(const Nest& nest) {
    return detail::fetched(nest);
  }

  /// Creates one object per worker by fn(args...), when a closure first uses it on that worker. An Error in
  /// fn fails that closure. The result may have any type. Objects that the arguments refer to, such as a
  /// PerWorker, live at least as long as the created object.
  template <auto fn, class... Args>
  PerWorker<detail::ResultOf<fn>> create_per_worker_resource(Args&&... args) {
    return PerWorker<detail::ResultOf<fn>>(add_resource(
        detail::RegisteredMaker<fn>::number, detail::pack_arguments<fn>(std::forward<Args>(args)...)));
  }
  /// As above, for a function that returns an Iterator<T>, a Dataset<T>, or another type whose `Element`
  /// names the element type: each worker gets its own iterator. Assigning the result to an existing object,
  /// as in `data = coordinator.create_per_worker_dataset...`, frees the previous iterators.
  template <auto fn, class... Args>
  PerWorker<detail::IteratorOf<fn>> create_per_worker_dataset(Args&&... args) {
    if constexpr (std::is_same_v<detail::IteratorOf<fn>, detail::ResultOf<fn>>) {
      return create_per_worker_resource<fn>(std::forward<Args>(args)...);
    } else {
      return create_per_worker_resource<&detail::MakeIterator<fn>::call>(std::forward<Args>(args)...);
    }
  }
  /// As above, with a function object without state, such as a lambda without captures, or with serializable
  /// state, such as a struct of numbers and strings. Pass a plain function as the template argument instead.
  template <class F, class... Args>
  auto create_per_worker_dataset(F make, Args&&... args) {
    if constexpr (detail::Portable<F>) {
      return create_per_worker_dataset<&detail::CallObject<F>::call>(detail::Carried<F>(std::move(make)),
                                                                     std::forward<Args>(args)...);
    } else {
      detail::require_portable<F>();
    }
  }
  /// As above, with a dataset, which each worker recreates from its description and reads with its own
  /// iterator. Supports vectors, ranges, arrays and the file readers, with the operators of Dataset. Throws
  /// Error(invalid_argument) naming the operator for a dataset with a function that has captures: use a
  /// function that makes the dataset on each worker instead.
  template <class T>
  PerWorker<Iterator<T>> create_per_worker_dataset(const Dataset<T>& dataset) {
    return create_per_worker_resource<&detail::open_dataset<T>>(dataset);
  }

  /// Divides examples 0 to examples - 1 into splits; each example counts once per epoch. See SplitDataset.
  /// Throws Error: invalid_argument for invalid sizes or counts, already_exists for a name that is taken.
  SplitDataset create_split_dataset(std::int64_t examples, const SplitOptions& options = {});
  /// As above, for the elements of a dataset, which this call reads once to count them. A function on a
  /// worker makes the same dataset and reads examples_of(dataset, split). Throws Error(invalid_argument) for
  /// an endless dataset.
  template <class T>
  SplitDataset create_split_dataset(const Dataset<T>& dataset, const SplitOptions& options = {}) {
    return create_split_dataset(dataset.count(), options);
  }
  /// As above, with files, or parts of them, as splits. The coordinator reads the sizes of the files; workers
  /// open them by the same names. Also throws Error(not_found) for a missing file.
  SplitDataset create_split_dataset(const data::Paths& files, const SplitOptions& options = {});
  /// States of all ranks except the coordinator, in rank order. The death of a rank is detected immediately,
  /// whether or not a function involves it. Any thread.
  std::vector<TaskState> task_states() const;
  /// Number of live workers.
  int workers() const;
  /// Counts and times since the coordinator's start. Any thread.
  CoordinatorStatistics statistics() const;
  /// Indices of the live workers: 0 to workers() - 1 unless one has died.
  std::vector<int> worker_indices() const;

 private:
  std::shared_ptr<const coordinator::Result> add(std::uint32_t function, detail::PackedArguments arguments);
  std::shared_ptr<const coordinator::Result> add_with(const ScheduleOptions& options, std::uint32_t function,
                                                      detail::PackedArguments arguments);
  std::shared_ptr<const coordinator::Result> add_for(int worker, std::uint32_t function,
                                                     detail::PackedArguments arguments);
  bool has_lost(int worker) const;
  detail::ResourceHandle add_resource(std::uint32_t function, detail::PackedArguments arguments);

  std::shared_ptr<coordinator::Coordinator> implementation_;  // shared by all coordinators of a strategy
};

/// Index of the worker that runs the calling closure. Throws Error(failed_precondition) outside of a closure.
CAPSTAN_API int current_worker_index();

}  // namespace capstan
