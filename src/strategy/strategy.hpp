// strategy.hpp -- the coordinator's side of variables: owns the parts that create, name, save and restore
// them.
#pragma once

#include <memory>

#include "capstan/strategy.hpp"
#include "cluster/runtime.hpp"
#include "strategy/context.hpp"
#include "strategy/control_driver.hpp"
#include "strategy/counter_registry.hpp"
#include "strategy/current_restore_point.hpp"
#include "strategy/job_lifetime.hpp"
#include "strategy/ps_contents.hpp"
#include "strategy/recovery.hpp"
#include "strategy/save_progress.hpp"
#include "strategy/save_times.hpp"
#include "strategy/state_registry.hpp"
#include "strategy/update_group_registry.hpp"
#include "strategy/variable_creator.hpp"
#include "strategy/variable_registry.hpp"
#include "strategy/worker_resources.hpp"

namespace capstan::strategy {

/// Made, used and destroyed by one thread; each part says which of its functions other threads may call. The
/// destructor ends the job for all ranks.
class Strategy {
 public:
  /// Throws Error: failed_precondition on a rank other than the coordinator and if the runtime has another
  /// strategy; invalid_argument for options that do not match the job; and what Recovery throws.
  Strategy(std::shared_ptr<cluster::Runtime> runtime, StrategyOptions options);
  /// Returns the strategy of variables that are created outside of every scope: its ps is in this process,
  /// where no other rank reaches it.
  static Strategy& of_this_process();
  ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  const std::shared_ptr<cluster::Runtime>& runtime() const noexcept { return job_.runtime(); }
  Context& context() noexcept { return context_; }

  VariableCreator& variable_creator() noexcept { return variable_creator_; }
  const VariableRegistry& variables() const noexcept { return variables_; }
  CounterRegistry& counters() noexcept { return counters_; }
  UpdateGroupRegistry& update_groups() noexcept { return update_groups_; }
  /// Workers receive new recipes with the next batch of closures.
  WorkerResources& worker_resources() noexcept { return worker_resources_; }

  StateRegistry& states() noexcept { return states_; }
  const StateRegistry& states() const noexcept { return states_; }
  CurrentRestorePoint& restore_point() noexcept { return restore_point_; }
  PsContents& contents() noexcept { return contents_; }
  SaveProgress& save_progress() noexcept { return save_progress_; }
  SaveTimes& save_times() noexcept { return save_times_; }
  ControlDriver& control() noexcept { return control_; }
  const ControlDriver& control() const noexcept { return control_; }
  /// The state that a previous process of this coordinator left.
  const Recovery& recovery() const noexcept { return recovery_; }

  /// Returns the strategy whose scope the calling thread is in; null outside of all scopes.
  static Strategy* current() noexcept;
  static void set_current(Strategy* strategy) noexcept;

 private:
  Strategy(std::shared_ptr<cluster::Runtime> runtime, const StrategyOptions& options, bool of_this_process);

  JobLifetime job_;
  bool of_this_process_;
  Context context_;
  SaveProgress save_progress_;
  SaveTimes save_times_;
  ControlDriver control_;
  Recovery recovery_;
  PsContents contents_;
  CurrentRestorePoint restore_point_;
  VariableRegistry variables_;
  VariableCreator variable_creator_;
  WorkerResources worker_resources_;
  CounterRegistry counters_;
  UpdateGroupRegistry update_groups_;
  StateRegistry states_;
};

}  // namespace capstan::strategy
