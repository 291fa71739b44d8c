// job_record.hpp -- the persistent state of a job from which a restarted coordinator resumes.
#pragma once

#include <atomic>
#include <cstdint>

#include "cluster/runtime.hpp"
#include "coordinator/scheduling/closure_queue.hpp"
#include "strategy/strategy.hpp"

namespace capstan::coordinator {

/// Records members, the last step and the number of the next closure in the coordinator's persistent memory.
/// Used by the thread that drives the control loop, except record_step() and require_restored().
class JobRecord {
 public:
  JobRecord(cluster::Runtime& runtime, strategy::Strategy& strategy, ClosureQueue& queue)
      : runtime_(runtime), strategy_(strategy), queue_(queue) {}

  /// In a restarted coordinator: reads whether the previous process left too many unrecorded closures.
  void recover();
  /// Throws Error(data_loss) if a checkpoint must be restored before closures may run. Any thread.
  void require_restored();
  /// See ClusterCoordinator::record_step. Blocks until all closures have ended.
  void record_step(std::int64_t step);

  /// Makes the next update() record the members.
  void note_change() noexcept { members_changed_ = true; }
  void record_members();
  /// Records members that have changed, and whether too many closures were scheduled since the last recorded
  /// step. Does nothing if the coordinator cannot be restarted. Called in each round.
  void update();

 private:
  void check_unrecorded_closures();

  cluster::Runtime& runtime_;
  strategy::Strategy& strategy_;
  ClosureQueue& queue_;
  bool members_changed_ = false;
  bool too_many_unrecorded_ = false;
  std::atomic<bool> needs_restore_{false};  // a checkpoint has to be restored first
};

}  // namespace capstan::coordinator
