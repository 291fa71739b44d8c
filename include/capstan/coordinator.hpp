// coordinator.hpp -- ClusterCoordinator: functions that run on whichever worker is free.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/dataset.hpp"
#include "capstan/per_worker.hpp"
#include "capstan/remote_function.hpp"
#include "capstan/strategy.hpp"

namespace capstan {

namespace coordinator {
class Coordinator;
struct Result;
}  // namespace coordinator

namespace detail {

/// Waits for a closure's result. Throws the closure's Error, or Error(cancelled).
std::vector<std::byte> fetch_bytes(const coordinator::Result& result);
bool is_ready(const coordinator::Result& result);

template <auto fn>
using IteratorOf = Iterator<typename ResultOf<fn>::Element>;

/// fn, with the iterator of the dataset that it makes as its result.
template <auto fn, class Arguments>
struct MakeIterator;
template <auto fn, class... Args>
struct MakeIterator<fn, std::tuple<Args...>> {
  static IteratorOf<fn> call(Args... args) { return fn(std::move(args)...); }
};

}  // namespace detail

/// The result of a scheduled function, before it is there. Copies are the same result.
template <class T>
class RemoteValue {
 public:
  explicit RemoteValue(std::shared_ptr<const coordinator::Result> result) : result_(std::move(result)) {}

  /// Waits. Throws what the function threw, with its code; Error(cancelled) when an earlier error called it
  /// off: schedule it again. A result stays when the worker that made it dies.
  T fetch() const {
    const std::vector<std::byte> bytes = detail::fetch_bytes(*result_);
    if constexpr (!std::is_void_v<T>) return from_bytes<T>(bytes);
  }
  /// Done, well or not: fetch() will not wait.
  bool ready() const { return detail::is_ready(*result_); }

 private:
  std::shared_ptr<const coordinator::Result> result_;
};

/// Schedules functions on workers. Used by the thread that made the strategy.
///
/// Errors are raised as in TensorFlow: the first one is kept, what is queued is cancelled, what runs is
/// awaited, and the next schedule, join or done throws it once; after that everything is usable again. A
/// closure whose worker dies runs again on another; what it had pushed before is not applied again, so each
/// push counts once if both runs push the same things in the same order. When a ps dies, schedule, join
/// and done throw Error(unavailable) naming it, at once and every time.
class ClusterCoordinator {
 public:
  explicit ClusterCoordinator(ParameterServerStrategy& strategy);
  ~ClusterCoordinator();
  ClusterCoordinator(const ClusterCoordinator&) = delete;
  ClusterCoordinator& operator=(const ClusterCoordinator&) = delete;

  /// Queues fn(args...) and returns. Blocks while the queue is full (--queue-limit). Arguments are converted
  /// to the parameters' types and copied. What fn pushes has been applied when it counts as done.
  template <auto fn, class... Args>
  RemoteValue<detail::ResultOf<fn>> schedule(Args&&... args) {
    return RemoteValue<detail::ResultOf<fn>>(
        add(detail::Registered<fn>::number, detail::pack_arguments<fn>(std::forward<Args>(args)...)));
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

  template <class T>
  T fetch(const RemoteValue<T>& value) {
    return value.fetch();
  }

  /// fn(args...) makes one object on each worker, when a closure first uses it there. An Error in fn is that
  /// closure's.
  template <auto fn, class... Args>
  PerWorker<detail::ResultOf<fn>> create_per_worker_resource(Args&&... args) {
    return PerWorker<detail::ResultOf<fn>>(
        detail::ResourceRecipe{next_resource(), detail::Registered<fn>::number,
                               detail::pack_arguments<fn>(std::forward<Args>(args)...)});
  }
  /// The same for a function that returns an Iterator<T>, or a Dataset<T> or another thing that says with
  /// `Element` of what it is an iterator: each worker gets an iterator of its own.
  template <auto fn, class... Args>
  PerWorker<detail::IteratorOf<fn>> create_per_worker_dataset(Args&&... args) {
    if constexpr (std::is_same_v<detail::IteratorOf<fn>, detail::ResultOf<fn>>) {
      return create_per_worker_resource<fn>(std::forward<Args>(args)...);
    } else {
      return create_per_worker_resource<&detail::MakeIterator<fn, detail::ArgumentsOf<fn>>::call>(
          std::forward<Args>(args)...);
    }
  }

  /// Workers that are there now.
  int workers() const;
  /// Which they are: 0 to workers() - 1 as long as none has died.
  std::vector<int> worker_indices() const;

 private:
  std::shared_ptr<const coordinator::Result> add(std::uint32_t function, std::vector<std::byte> arguments);
  std::shared_ptr<const coordinator::Result> add_for(int worker, std::uint32_t function,
                                                     std::vector<std::byte> arguments);
  bool has_lost(int worker) const;
  std::uint64_t next_resource();

  std::unique_ptr<coordinator::Coordinator> implementation_;
};

/// The number of the worker that runs the calling closure. Throws Error(failed_precondition) elsewhere.
int current_worker_index();

}  // namespace capstan
