// coordinator.hpp -- sends closures to workers and collects their results.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "capstan/coordinator.hpp"
#include "cluster/membership/failure_detector.hpp"
#include "coordinator/metrics.hpp"
#include "coordinator/recovery/job_record.hpp"
#include "coordinator/recovery/last_worker.hpp"
#include "coordinator/recovery/late_workers.hpp"
#include "coordinator/recovery/ps_recovery.hpp"
#include "coordinator/recovery/restarted_workers.hpp"
#include "coordinator/scheduling/closure_queue.hpp"
#include "coordinator/scheduling/control_loop.hpp"
#include "coordinator/scheduling/dispatcher.hpp"
#include "coordinator/scheduling/watchdog.hpp"
#include "protocol/ps_messages.hpp"
#include "strategy/strategy.hpp"

namespace capstan::coordinator {

/// A thread that waits for results drives the control fabric; if there is none, the control loop's keeper
/// thread does. Only that thread uses the members below, except where their headers say otherwise. Has more
/// members than most classes: it connects them, in the order in which they must be created and destroyed.
class Coordinator {
 public:
  explicit Coordinator(strategy::Strategy& strategy);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Throws Error(out_of_range) for an affinity to a worker that does not exist.
  std::shared_ptr<Result> schedule(std::uint32_t function, detail::PackedArguments arguments,
                                   ClosureQueue::Extras extras = {});
  /// Schedules a closure for one worker only; see ClosureQueue::put_for. Throws Error(out_of_range).
  std::shared_ptr<Result> schedule_on(int worker, std::uint32_t function, detail::PackedArguments arguments);
  /// Throws Error(out_of_range).
  void check_worker(int worker) const;
  ClosureQueue& queue() noexcept { return *queue_; }
  strategy::Strategy& strategy() noexcept { return strategy_; }
  /// Returns the state of each rank except this one, by rank. Any thread.
  std::vector<TaskState> task_states() const;
  /// See ClusterCoordinator::record_step.
  void record_step(std::int64_t step) { record_.record_step(step); }
  /// Returns the indices of live workers, ascending. Blocks while there is none.
  std::vector<int> worker_indices();
  Metrics& metrics() noexcept { return metrics_; }
  /// Returns true if a worker with this index has ever died.
  bool has_lost(int worker) const { return members_.has_lost_worker(worker); }
  int workers() const noexcept { return members_.alive(Role::worker); }

 private:
  void end();
  void end_metrics();
  void start_embedded_workers();
  ControlLoop::Round round();
  void check_for_stall(Watchdog::Clock::time_point now);
  void report_stall();
  void on_failure(transport::Peer& peer);
  void watch_restarted_workers(cluster::FailureDetector::Clock::time_point now);
  void check_silent_ranks(cluster::FailureDetector::Clock::time_point now);
  void take_heartbeat(const transport::Message& message);
  void check_overruns(cluster::FailureDetector::Clock::time_point now);
  void check_silent_ps();
  void on_member_change(const cluster::Membership::Change& change);
  bool lose(transport::Peer& worker, cluster::MemberState state, std::string cause);
  void release(transport::Peer& peer);
  std::string status() const;
  std::set<int> tell_every_ps_of_death(const protocol::WorkerDead& worker);
  void add_workers();
  void recover();

  strategy::Strategy& strategy_;
  cluster::Runtime& runtime_;
  cluster::Membership& members_;
  std::shared_ptr<ControlLoop> loop_;    // shared with results that outlive this object
  std::shared_ptr<ClosureQueue> queue_;  // shared with a save in progress
  Dispatcher dispatcher_;
  RestartedWorkers restarted_workers_;
  bool overruns_ = false;  // a closure may be running past its deadline
  JobRecord record_;
  cluster::FailureDetector failure_detector_;
  PsRecovery ps_recovery_;
  Watchdog watchdog_;
  Watchdog::Clock::time_point next_stall_check_{};
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<std::jthread> embedded_workers_;
  Metrics metrics_;
  transport::Subscriptions subscriptions_;
  LateWorkers late_workers_;  // its thread uses all of the above
  LastWorker last_worker_;
};

}  // namespace capstan::coordinator
