// job_record.hpp -- the state of a job that a coordinator leaves to the process that replaces it.
#pragma once

#include <atomic>
#include <cstdint>

#include "cluster/runtime.hpp"
#include "coordinator/scheduling/closure_queue.hpp"
#include "strategy/strategy.hpp"

namespace capstan::coordinator {

/// Records members, the last step and the number of the next closure in the coordinator's persistent memory.
/// Used by the thread that drives the control loop, but for record_step() and require_restored().
class JobRecord {
 public:
  JobRecord(cluster::Runtime& runtime, strategy::Strategy& strategy, ClosureQueue& queue)
      : runtime_(runtime), strategy_(strategy), queue_(queue) {}

  /// A previous coordinator was replaced: reads whether it left too many open closures to resume.
  void recover();
  /// Throws Error(data_loss) if a checkpoint has to be restored before closures may run. Any thread.
  void require_restored();
  /// See ClusterCoordinator::record_step. Blocks until all closures have ended.
  void record_step(std::int64_t step);

  /// A member has changed; update() records it.
  void note_change() noexcept { members_changed_ = true; }
  void record_members();
  /// Called in each round: records members that have changed, and whether too many closures are open. Does
  /// nothing where no process may replace this one.
  void update();

 private:
  void check_open_closures();

  cluster::Runtime& runtime_;
  strategy::Strategy& strategy_;
  ClosureQueue& queue_;
  bool members_changed_ = false;
  bool too_many_open_ = false;
  std::atomic<bool> needs_restore_{false};  // a checkpoint has to be restored first
};

}  // namespace capstan::coordinator
