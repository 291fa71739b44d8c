// control_driver.hpp -- decides which thread progresses the coordinator's control fabric.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "cluster/runtime.hpp"
#include "strategy/closure_scheduler.hpp"
#include "strategy/interim_control.hpp"
#include "strategy/save_progress.hpp"
#include "transport/fabric.hpp"

namespace capstan::strategy {

/// From begin_scheduler() to end_scheduler() the scheduler of a ClusterCoordinator progresses the fabric.
/// Otherwise the caller of wait_until() does and, in a job whose ps have replicas, an interim thread.
class ControlDriver {
 public:
  /// Both outlive this object. Registers the handlers of the interim control; progresses nothing yet.
  ControlDriver(cluster::Runtime& runtime, SaveProgress& save);

  /// Starts the interim thread if ps have replicas; otherwise does nothing.
  void start_interim() { interim_.start(); }
  /// Joins the interim thread: afterwards the caller progresses the fabric.
  void stop_interim() { interim_.stop(); }

  /// Lets `scheduler` progress the fabric. REQUIRES: stop_interim() was called.
  void begin_scheduler(std::shared_ptr<ClosureScheduler> scheduler);
  /// Waits for a save in progress, at most until `deadline`; then the caller progresses the fabric again. No
  /// other scheduler can follow, since this one tells every worker to end.
  void end_scheduler(transport::Deadline deadline);
  bool scheduler_ended() const noexcept { return scheduler_ended_; }
  /// Returns the scheduler, or null if there is none, so that no closure runs. Any thread.
  std::shared_ptr<ClosureScheduler> scheduler() const;

  /// Blocks until a message of the control fabric has made `done` true; returns false if the deadline passes
  /// first.
  bool wait_until(const std::function<bool()>& done, transport::Deadline deadline);

 private:
  cluster::Runtime& runtime_;
  SaveProgress& save_;
  InterimControl interim_;
  mutable std::mutex mutex_;  // of scheduler_
  std::shared_ptr<ClosureScheduler> scheduler_;
  bool scheduler_ended_ = false;
};

}  // namespace capstan::strategy
