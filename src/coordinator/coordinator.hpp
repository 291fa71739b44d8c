// coordinator.hpp -- hands closures to workers and collects what they return.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "capstan/coordinator.hpp"
#include "cluster/membership/failure_detector.hpp"
#include "coordinator/metrics.hpp"
#include "coordinator/recovery/failover_manager.hpp"
#include "coordinator/recovery/late_workers.hpp"
#include "coordinator/recovery/restarted_workers.hpp"
#include "coordinator/scheduling/closure_queue.hpp"
#include "coordinator/scheduling/control_loop.hpp"
#include "coordinator/scheduling/dispatcher.hpp"
#include "coordinator/scheduling/watchdog.hpp"
#include "protocol/ps_messages.hpp"
#include "strategy/strategy.hpp"

namespace capstan::coordinator {

/// The thread that waits for results drives the control fabric; the control loop's keeper does meanwhile.
class Coordinator {
 public:
  explicit Coordinator(strategy::Strategy& strategy);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Throws Error(out_of_range) for an affinity to a worker that was never there.
  std::shared_ptr<Result> schedule(std::uint32_t function, detail::PackedArguments arguments,
                                   ClosureQueue::Extras extras = {});
  /// For one worker alone; see ClosureQueue::put_for. Throws Error(out_of_range).
  std::shared_ptr<Result> schedule_on(int worker, std::uint32_t function, detail::PackedArguments arguments);
  /// Throws Error(out_of_range).
  void check_worker(int worker) const;
  ClosureQueue& queue() noexcept { return *queue_; }
  strategy::Strategy& strategy() noexcept { return strategy_; }
  /// Of all ranks but this one, in their order. Any thread.
  std::vector<TaskState> task_states() const;
  /// See ClusterCoordinator::record_step.
  void record_step(std::int64_t step);
  /// Of workers that are there now, in order.
  std::vector<int> worker_indices();
  Metrics& metrics() noexcept { return metrics_; }
  /// A worker of that index is lost, or was.
  bool has_lost(int worker) const { return members_.has_lost_worker(worker); }
  int workers() const noexcept { return members_.alive(Role::worker); }

 private:
  void end();
  void end_metrics();
  void start_embedded_workers();
  ControlLoop::Round round();
  void watch(Watchdog::Clock::time_point now);
  void report_standstill();
  void on_failure(transport::Peer& peer);
  void watch_returned(cluster::FailureDetector::Clock::time_point now);
  void look_for_silent_ranks(cluster::FailureDetector::Clock::time_point now);
  void take_heartbeat(const transport::Message& message);
  void look_for_overruns(cluster::FailureDetector::Clock::time_point now);
  void look_for_silent_ps();
  void note(const cluster::Membership::Change& change);
  bool lose(transport::Peer& worker, cluster::MemberState state, std::string cause);
  void let_go(transport::Peer& peer);
  void when_alone(const transport::Peer& last);
  std::string status() const;
  std::set<int> tell_every_ps_of_death(const protocol::WorkerDead& worker);
  bool may_restart() const;
  void give_up_waiting();
  bool greet_returned_ps();
  void lose_ps(transport::Peer& peer, std::string cause);
  void wait_for_ps();
  cluster::Membership::Clock::time_point waits_until(const cluster::Membership::Status& ps) const;
  std::vector<std::int32_t> lost_workers() const;
  void add_workers();
  void recover();
  void note_members();
  void look_at_open_closures();

  strategy::Strategy& strategy_;
  cluster::Runtime& runtime_;
  cluster::Membership& members_;
  std::shared_ptr<ControlLoop> loop_;    // shared with results that outlive this object
  std::shared_ptr<ClosureQueue> queue_;  // shared with a save in progress
  Dispatcher dispatcher_;
  RestartedWorkers returning_;
  std::string last_lost_;                                             // the worker
  std::optional<std::chrono::steady_clock::time_point> alone_until_;  // without a worker
  bool overruns_ = false;  // a function may be running past its deadline
  struct Returned {
    cluster::Member ps;
    std::uint32_t incarnation = 0;
  };
  std::vector<Returned> returned_;                      // not greeted yet
  std::vector<std::pair<int, std::string>> not_taken_;  // spares that cannot, and why
  FailoverManager failovers_;
  cluster::FailureDetector failure_detector_;
  Watchdog watchdog_;
  Watchdog::Clock::time_point next_look_{};
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<std::jthread> embedded_workers_;
  bool members_changed_ = false;
  std::atomic<bool> lacks_start_{false};  // it has to go on from a checkpoint, and none has been restored yet
  bool too_much_open_ = false;            // of the thread that drives the loop
  Metrics metrics_;
  transport::Subscriptions subscriptions_;
  LateWorkers late_;  // last: its thread uses all of the above
};

}  // namespace capstan::coordinator
