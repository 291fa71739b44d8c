// dispatcher.hpp -- which closure goes to which worker, and when.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "coordinator/scheduling/closure_queue.hpp"
#include "protocol/closure_messages.hpp"
#include "strategy/strategy.hpp"
#include "transport/fabric.hpp"

namespace capstan::coordinator {

/// A worker holds a few closures, so that the next one is there when one ends, and as many as take a fraction
/// of a millisecond when they are short, so that a message carries many. Short is what such functions have
/// been so far; when that was wrong and another worker has nothing to do, the one who is busy gives back what
/// it has not begun. After an error every worker does. Used by the thread that drives the control loop.
class Dispatcher {
 public:
  using Clock = std::chrono::steady_clock;

  /// `inflight_limit`: closures that a worker holds at most; 0 = by the time that they take.
  Dispatcher(strategy::Strategy& strategy, const cluster::Membership& members, ClosureQueue& queue,
             std::size_t inflight_limit)
      : strategy_(strategy), members_(members), queue_(queue), inflight_limit_(inflight_limit) {}

  /// Worker i gets its first closure `delay` x i after it was added, `max` at most unless that is 0.
  void delay_start(std::chrono::milliseconds delay, std::chrono::milliseconds max) {
    start_delay_ = delay;
    start_delay_max_ = max;
  }

  /// How many workers there may ever be. Before any is added.
  void make_room(int workers) { workers_.reserve(static_cast<std::size_t>(workers)); }
  /// Workers are added in order of their index. One that is not alive yet gets nothing until `replace`.
  void add(transport::Peer& worker);
  /// A worker that was restarted, or has joined, has that index from now on, and is told of all that its
  /// closures may name. REQUIRES: the one before is lost, or has not begun.
  void replace(int index, transport::Peer& worker);
  /// Of that index, dead or alive; null when there is none.
  transport::Peer* worker(int index) const;
  /// It gets nothing more, and gives back what it has not begun.
  void leave(int rank);
  /// One that has asked to leave, and holds nothing any more: it may be told so.
  transport::Peer* leaver() const;
  /// How many closures of this worker have ended.
  std::uint64_t ended(const transport::Peer& worker) const;

  /// Hands out closures until none is left or nobody has room; true when any was.
  bool dispatch();
  /// When to look again, at the latest, though nothing has come up.
  std::chrono::milliseconds rest() const noexcept { return rest_; }

  void take_results(const transport::Message& message);
  void take_back(const transport::Message& message);
  /// A worker is not alive any more; how many of its closures run elsewhere. They are queued again when all
  /// of the `ps`, by rank, have applied what it pushed: what of a closure counts is certain then. They should
  /// have by the deadline. Once for each worker.
  std::size_t take_from(const transport::Peer& worker, std::set<int> ps, Clock::time_point deadline);
  /// A ps has applied all that a lost worker pushed.
  void applied(int rank, int ps);
  /// Ranks of lost workers, of which this ps has not said so.
  std::vector<int> open_at(int ps) const;
  struct Overdue {
    int worker;  // rank
    int ps;      // rank
  };
  /// Some ps has not applied all that a lost worker pushed.
  bool any_open() const noexcept { return !unapplied_.empty(); }
  /// A ps that has not applied what a lost worker pushed, after the deadline.
  std::optional<Overdue> overdue() const;

  struct Overrun {
    transport::Peer* peer;  // null: no function runs past its deadline
    std::uint32_t function;
    Clock::time_point deadline;
  };
  /// Cancels functions that run past their deadline.
  void cancel_expired();
  /// The worker at a function that has run past its deadline for the longest.
  Overrun overrun() const;

  struct Holding {
    int worker;
    std::size_t closures;
    std::uint32_t first;      // function of the one that it is at
    Clock::time_point since;  // when it was idle, or answered
  };
  /// Of workers that have something to do.
  std::vector<Holding> holding() const;

  struct Held {
    int worker;  // index
    int rank;
    bool alive;
    std::uint64_t ended;
    std::size_t closures;
  };
  /// Of all workers, by index.
  std::vector<Held> held() const;

  /// Of all workers that were ever there. Any thread.
  int workers() const noexcept { return count_; }
  void send_to_all(std::uint16_t type);
  /// Tells every worker to free its objects that have lost their last owner.
  void free_resources();

 private:
  struct Running {
    Closure closure;
    double estimate;         // nanoseconds
    bool cancelled = false;  // its deadline has passed, and the worker was told
  };
  struct Worker {
    transport::Peer* peer = nullptr;
    int index = 0;
    bool leaves = false;      // has asked to
    bool fills = false;       // takes closures until it has its fill
    bool asked_back = false;  // and it had nothing to give, or has not answered
    std::size_t known_variables = 0;
    std::uint64_t known_resources = 0;  // the last number
    std::deque<Running> running;        // in the order in which it was told to run them
    double load = 0;                    // of `running`
    std::uint64_t answered = 0;         // the count of answers at its last one
    std::uint64_t ended = 0;            // closures
    std::uint64_t failures = 0;         // of closures for any worker
    Clock::time_point heard{};          // when it was idle, or answered
    Clock::time_point start{};          // gets nothing before
    std::vector<std::byte> batch;
    std::uint64_t batched = 0;
  };

  struct Unapplied {
    int rank;            // of a lost worker
    std::set<int> open;  // ps that may have something of it left to apply
    Clock::time_point deadline;
    std::vector<Closure> closures;
  };

  Worker* of_rank(int rank);
  Worker* from(const transport::Message& message) { return of_rank(message.from); }
  bool alive(const Worker& worker) const { return members_.is_alive(worker.peer->rank()); }
  bool waits_for_start(const Worker& worker) const;
  bool has_room(const Worker& worker) const;
  bool give_to_idle();
  Worker* maker_of(const Closure& closure, double least_load);
  bool append_extras(std::vector<std::byte>& out, protocol::RunHeader header, const Closure& closure);
  bool dispatch_for_one();
  void give(Worker& worker, Closure closure);
  std::uint64_t announce(Worker& worker);
  void send_batch(Worker& worker);
  std::optional<Running> stop_running(Worker& worker, std::uint64_t id);
  double estimate(std::uint32_t function);
  void learn(std::uint32_t function, double nanoseconds);
  void ask_back();
  void revoke();
  void run_elsewhere();

  strategy::Strategy& strategy_;
  const cluster::Membership& members_;
  ClosureQueue& queue_;
  std::size_t inflight_limit_;
  std::vector<Worker> workers_;  // by index; has its room from the start, so that it never moves
  std::atomic<int> count_{0};    // of `workers_`
  std::vector<Unapplied> unapplied_;
  std::vector<Worker*> heap_;
  std::vector<double> times_;  // of functions, by number; 0: not known
  std::uint64_t answers_ = 0;
  std::uint64_t revoked_before_ = 0;  // number of the first closure that no error has cancelled
  std::chrono::milliseconds rest_{};
  std::chrono::milliseconds start_delay_{0};
  std::chrono::milliseconds start_delay_max_{0};
  bool starting_ = false;  // some worker waits for its start
};

}  // namespace capstan::coordinator
