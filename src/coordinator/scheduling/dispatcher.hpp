// dispatcher.hpp -- assigns closures to workers and sends them in batches.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "coordinator/scheduling/closure_queue.hpp"
#include "protocol/closure_messages.hpp"
#include "strategy/strategy.hpp"
#include "transport/fabric.hpp"

namespace capstan::coordinator {

/// A worker holds at least two closures, so that it has a next one when one ends. It holds more short
/// closures, up to a fraction of a millisecond of work, so that one message carries many. Durations are
/// estimated from earlier closures of the same function. If a worker becomes idle, a busy worker returns
/// closures that it has not started; after an error, every worker does. Used by the thread that drives the
/// control loop.
///
/// A set has the workers with capacity, least loaded first, so that a closure takes little time however many
/// workers there are. A function that changes a worker touches it; dispatch() moves the touched workers to
/// their places in the set.
class Dispatcher {
 public:
  using Clock = std::chrono::steady_clock;

  /// `inflight_limit` is the largest number of closures that a worker holds; 0 derives it from their
  /// durations.
  Dispatcher(strategy::Strategy& strategy, const cluster::Membership& members, ClosureQueue& queue,
             std::size_t inflight_limit)
      : strategy_(strategy), members_(members), queue_(queue), inflight_limit_(inflight_limit) {}

  /// Delays the first closure of worker i by `delay` x i after it was added, limited to `max` unless that is
  /// 0.
  void delay_start(std::chrono::milliseconds delay, std::chrono::milliseconds max) {
    start_delay_ = delay;
    start_delay_max_ = max;
  }

  /// Reserves memory for this many workers, the most there may ever be. Called before the first add().
  void reserve(int workers) { workers_.reserve(static_cast<std::size_t>(workers)); }
  /// Adds a worker; called in the order of indices. A dead worker gets no closures until replace().
  void add(transport::Peer& worker);
  /// Gives this index to a worker that was restarted or has joined, and announces all variables and recipes
  /// to it. REQUIRES: the previous worker is lost or has not started.
  void replace(int index, transport::Peer& worker);
  /// Returns the worker with this index, dead or alive; null if there is none.
  transport::Peer* worker(int index) const;
  /// Stops sending closures to the worker, and requests those back that it has not started.
  void leave(int rank);
  /// Returns a worker that has asked to leave and holds no closure; null if there is none.
  transport::Peer* drained_worker() const;
  /// Returns the number of closures that this worker has executed.
  std::uint64_t ended(const transport::Peer& worker) const;

  /// Sends closures until none is queued or no worker has capacity. Returns true if it sent any.
  bool dispatch();
  /// Returns the time until the next call of dispatch() is due if no message arrives.
  std::chrono::milliseconds rest() const noexcept { return rest_; }

  void take_results(const transport::Message& message);
  void take_back(const transport::Message& message);
  /// Takes the closures of a dead worker and returns their number. They are queued again when all ranks in
  /// `ps` have applied its pushes: only then is it certain which pushes count. overdue() returns a ps that
  /// has not done so by the deadline. Called once for each worker.
  std::size_t take_from(const transport::Peer& worker, std::set<int> ps, Clock::time_point deadline);
  /// Records that a ps has applied all pushes of a lost worker.
  void note_applied(int rank, int ps);
  struct Overdue {
    int worker;  // rank
    int ps;      // rank
  };
  /// Returns true if a ps has not applied all pushes of a lost worker.
  bool has_unapplied() const noexcept { return !unapplied_.empty(); }
  /// Returns a ps that has not applied the pushes of a lost worker by the deadline.
  std::optional<Overdue> overdue() const;

  struct Overrun {
    transport::Peer* peer;  // null: no closure runs past its deadline
    std::uint32_t function;
    Clock::time_point deadline;
  };
  /// Cancels closures that run past their deadline.
  void cancel_expired();
  /// Returns the worker whose closure has run past its deadline for the longest time.
  Overrun overrun() const;

  struct BusyWorker {
    int worker;
    std::size_t closures;
    std::uint32_t first;      // function of the running one
    Clock::time_point since;  // when it last was idle or answered
  };
  /// Returns the workers that have closures.
  std::vector<BusyWorker> busy_workers() const;

  struct WorkerStatus {
    int worker;  // index
    int rank;
    bool alive;
    std::uint64_t ended;
    std::size_t closures;
  };
  /// Returns the state of all workers, by index.
  std::vector<WorkerStatus> worker_statuses() const;

  /// Returns the number of workers that were ever added. Any thread.
  int workers() const noexcept { return count_; }
  void send_to_all(std::uint16_t type);
  /// Tells every worker to free the per-worker objects that have lost their last owner.
  void free_resources();

 private:
  struct Running {
    Closure closure;
    double estimate;         // nanoseconds
    bool cancelled = false;  // its deadline has passed, and the worker was notified
  };
  /// Position among the workers that may get more closures. Among workers of equal load, the one that
  /// answered last is the first, since it is awake.
  struct Place {
    double load;
    std::uint64_t answered;
    int index;

    bool operator<(const Place& other) const {
      if (load != other.load) return load < other.load;
      return answered != other.answered ? answered > other.answered : index < other.index;
    }
  };

  struct Worker {
    transport::Peer* peer = nullptr;
    int index = 0;
    bool leaves = false;       // has asked to leave
    bool fills = true;         // gets closures until its load reaches the limit
    bool touched = false;      // is in touched_
    bool needs_next = false;   // counts in need_next_
    bool recall_sent = false;  // was asked for closures, and has not answered or had none
    std::size_t known_variables = 0;
    std::uint64_t known_resources = 0;  // id of the last announced one
    std::deque<Running> running;        // in the order in which they were sent
    double load = 0;                    // sum of the estimates of `running`
    std::uint64_t answered = 0;         // value of answers_ at its last answer
    std::uint64_t ended = 0;            // closures that it executed
    std::uint64_t failures = 0;         // of closures for any worker
    Clock::time_point heard{};          // when it last was idle or answered
    Clock::time_point start{};          // gets no closures before
    std::optional<Place> place;         // in places_; its load may have risen since. nullopt: not there
    std::vector<std::byte> batch;
    std::uint64_t batched = 0;

    Place key() const { return {load, answered, index}; }
  };

  struct Unapplied {
    int rank;            // of a lost worker
    std::set<int> open;  // ps that may not have applied all its pushes
    Clock::time_point deadline;
    std::vector<Closure> closures;
  };

  Worker* of_rank(int rank);
  Worker* from(const transport::Message& message) { return of_rank(message.from); }
  bool alive(const Worker& worker) const { return members_.is_alive(worker.peer->rank()); }
  bool waits_for_start(const Worker& worker) const;
  void start_workers();
  bool has_capacity(const Worker& worker) const;
  void touch(Worker& worker);
  void remove_place(Worker& worker);
  void settle();
  bool dispatch_for_one();
  static bool is_later(const Worker* a, const Worker* b);
  Worker* least_loaded();
  bool dispatch_for_any();
  bool all_busy() const;
  Worker* idle_after(const std::optional<Place>& place);
  bool assign_to_idle();
  Worker* producer_of(const Closure& closure, double least_load);
  bool append_extras(std::vector<std::byte>& out, protocol::RunHeader header, const Closure& closure);
  void assign(Worker& worker, Closure closure);
  std::uint64_t announce(Worker& worker);
  void send_batch(Worker& worker);
  std::optional<Running> stop_running(Worker& worker, std::uint64_t id);
  double estimate(std::uint32_t function);
  void update_estimate(std::uint32_t function, double nanoseconds);
  void recall_for_idle();
  void revoke();
  void requeue_applied();

  strategy::Strategy& strategy_;
  const cluster::Membership& members_;
  ClosureQueue& queue_;
  std::size_t inflight_limit_;
  std::vector<Worker> workers_;  // by index; never reallocated, since its size is reserved
  std::atomic<int> count_{0};    // of `workers_`
  std::unordered_map<int, int> index_of_rank_;
  std::set<Place> places_;     // of the workers with capacity; some may be silent, or not known to the ps yet
  std::vector<int> touched_;   // workers that have changed since settle()
  std::size_t need_next_ = 0;  // workers with fewer than two closures
  std::vector<Worker*> heap_;  // least loaded first, while closures are assigned
  std::vector<int> leavers_;   // workers that have asked to leave
  std::vector<Unapplied> unapplied_;
  std::vector<double> times_;  // estimated duration in ns, by function; 0: unknown
  std::uint64_t answers_ = 0;
  std::uint64_t revoked_before_ = 0;  // id of the first closure that no error has cancelled
  std::chrono::milliseconds rest_{};
  std::chrono::milliseconds start_delay_{0};
  std::chrono::milliseconds start_delay_max_{0};
  bool starting_ = false;  // a worker waits for its start time
  Clock::time_point next_start_{};
  Clock::time_point next_recall_{};  // no search for a worker to recall from before
};

}  // namespace capstan::coordinator
