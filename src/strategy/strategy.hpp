// strategy.hpp -- the coordinator's side of variables: placement, creation, checkpoints, the end of the job.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capstan/detail/per_worker.hpp"
#include "capstan/strategy.hpp"
#include "cluster/runtime.hpp"
#include "strategy/checkpointed_state.hpp"
#include "strategy/closure_scheduler.hpp"
#include "strategy/context.hpp"
#include "strategy/interim_control.hpp"
#include "strategy/ps_contents.hpp"
#include "strategy/recovery.hpp"
#include "strategy/restore_point.hpp"
#include "strategy/save_progress.hpp"
#include "strategy/save_times.hpp"
#include "strategy/worker_resources.hpp"

namespace capstan::strategy {

class Strategy {
 public:
  Strategy(std::shared_ptr<cluster::Runtime> runtime, StrategyOptions options, bool of_this_process = false);
  /// For variables that are created outside of every scope: a ps in this process, which no other rank
  /// reaches.
  static Strategy& of_this_process();
  ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  /// `shape` is null when the initial value has one.
  std::shared_ptr<const BoundVariable> create_variable(const std::string& name, DType dtype,
                                                       const Shape* shape,
                                                       const detail::AnyInitialValue& initial,
                                                       const VariableOptions& options);
  /// Place of a new counter: ps and index on its board.
  std::pair<std::int32_t, std::uint32_t> create_counter(const std::string& name);
  const std::set<std::string>& created_counters() const noexcept { return created_counters_; }
  /// What at_rest() has returned, by name: the counters of this program.
  std::map<std::string, std::int64_t> by_name(const PsContents::Counters& counters) const;
  /// False when this program has not created it.
  bool set_counter(const std::string& name, std::int64_t value);

  /// The number of a new update group of all workers.
  std::uint32_t create_group(const std::string& name, const Synchronization& synchronization);

  void restart_group(std::uint32_t group, const std::string& name);
  /// Every worker is told of a new one by the first closure that it gets from then on.
  WorkerResources& worker_resources() noexcept { return worker_resources_; }

  /// In order of creation, without the first `known` ones. Read by the coordinator's dispatcher as well:
  /// descriptors are added, never changed.
  std::vector<std::shared_ptr<const BoundVariable>> variables(std::size_t known = 0) const;
  /// The newest of that name, or null.
  std::shared_ptr<const BoundVariable> find_variable(const std::string& name) const;

  /// Asks every ps at once and waits for all answers, by ps index.
  std::vector<std::vector<std::byte>> ask_every_ps(std::uint16_t type, transport::Bytes request,
                                                   std::chrono::milliseconds timeout,
                                                   const std::string& what);
  /// The same with a request for each, by ps index. When one refuses, the answers of the others are awaited
  /// before that is thrown.
  void ask_each_ps(std::uint16_t type, const std::vector<std::vector<std::byte>>& requests,
                   std::chrono::milliseconds timeout, const std::string& what);

  const std::shared_ptr<cluster::Runtime>& runtime() const noexcept { return runtime_; }
  Context& context() noexcept { return context_; }

  /// Checkpoints hold it from now on, as long as it lives. Throws Error(already_exists).
  void add_state(const std::string& name, const std::shared_ptr<CheckpointedState>& state);
  /// Those that live, by name.
  std::map<std::string, std::shared_ptr<CheckpointedState>> states() const;

  /// What an earlier process of this coordinator has left.
  const Recovery& recovery() const noexcept { return recovery_; }
  /// Called before a checkpoint is restored: discards the recorded step, and gives closures from now on
  /// numbers that no ps has seen.
  void forget_recorded_step();

  /// Where new variables go, whole: an index among the ps; -1 for where their turn is. Returns what it was.
  int colocate(int ps) noexcept { return std::exchange(colocated_, ps); }

  std::vector<PsLoad> loads();
  /// Of update groups, in the order of their numbers, from 1 on. Any thread.
  std::vector<std::string> group_names() const;
  /// How long saves took. Any thread.
  SaveTimes& save_times() noexcept { return save_times_; }

  const PsContents& contents() const noexcept { return contents_; }
  /// Calls `move_all`, which saves or restores what all ps have, until no spare has taken the place of one
  /// meanwhile. Returns the counters as they were then.
  PsContents::Counters at_rest(const std::function<void()>& move_all);
  /// What a spare will have to know of it. Nothing when there is no spare.
  std::optional<PsContents::Checkpoint> checkpoint_of(const std::string& directory, std::int64_t step,
                                                      PsContents::Counters counters) const;
  /// All variables are there. Any thread.
  void note_checkpoint(std::optional<PsContents::Checkpoint> checkpoint);

  /// What a spare would read has another name now.
  void move_noted_checkpoint(const std::string& from, const std::string& to) {
    contents_.move_checkpoint(from, to);
  }

  SaveProgress& save_progress() noexcept { return save_; }
  /// The caller progresses the control fabric from now on.
  void take_control() { interim_control_.stop(); }
  /// From now on `scheduler` progresses the control fabric. REQUIRES: take_control was called.
  void begin_scheduler(std::shared_ptr<ClosureScheduler> scheduler);
  /// Waits for a save in progress; then the caller progresses the control fabric again. There will be no
  /// other scheduler, since this one tells every worker to end.
  void end_scheduler();
  bool scheduler_ended() const noexcept { return scheduler_ended_; }
  /// Null while there is none: then no closure runs. Any thread.
  std::shared_ptr<ClosureScheduler> scheduler() const;
  /// Waits until a message of the control fabric has made `done` true; false if the deadline passes first.
  bool wait_for_control(const std::function<bool()>& done, transport::Deadline deadline);

  /// Variables, counters and states that are created from now on take their values from it. `checkpoint` is
  /// what a spare would have to know of it; it counts where the restore point is complete.
  void set_restore_point(std::unique_ptr<RestorePoint> point,
                         std::optional<PsContents::Checkpoint> checkpoint);
  /// Null when no checkpoint was restored.
  const RestorePoint* restore_point() const noexcept { return restore_point_.get(); }

  /// The strategy whose scope the calling thread is in, or null.
  static Strategy* current() noexcept;
  static void set_current(Strategy* strategy) noexcept;

 private:
  /// All, by number.
  PsContents::Counters read_counters();
  void start_embedded_ps();
  void check_new(const std::string& name, const Shape& shape) const;
  std::uint64_t shards_of(const std::string& name, DType dtype, const Shape& shape) const;
  /// The ps of a shard of so many bytes.
  int next_place(std::uint64_t bytes);
  struct Created {
    bool was_there = false;  // all or some of it, of an earlier coordinator
    std::vector<std::pair<int, protocol::CreateShard>> requests;  // for new shards, and of which ps
  };
  Created create_shards(protocol::VariableDescriptor& descriptor, const detail::AnyInitialValue& initial);
  void drop_variable(const protocol::VariableDescriptor& descriptor);
  /// Of a counter: index of its ps, and place on that one's board.
  std::pair<std::int32_t, std::uint32_t> place_of_counter(std::size_t number) const;
  /// Its first values: from the checkpoint that was restored, or its own.
  void fill_new(const protocol::VariableDescriptor& descriptor, const Created& created,
                const detail::AnyInitialValue& initial, const detail::WholeValue& whole);

  /// From before the strategy uses a fabric until it has let go of all.
  class Job {
   public:
    explicit Job(cluster::Runtime& runtime);
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    void is_over() noexcept { over_ = true; }

   private:
    cluster::Runtime& runtime_;
    bool over_ = false;
  };

  std::shared_ptr<cluster::Runtime> runtime_;
  Job job_;
  StrategyOptions options_;
  bool of_this_process_;  // for variables that no scope is open for
  std::vector<std::jthread> embedded_ps_;
  Context context_;
  InterimControl interim_control_;
  Recovery recovery_;
  mutable std::mutex variables_mutex_;  // and of groups_
  std::vector<std::shared_ptr<const BoundVariable>> variables_;
  std::set<std::string> variable_names_;  // of the thread that creates variables
  WorkerResources worker_resources_;
  std::uint32_t next_variable_;  // of every attempt: one that failed may have left shards behind
  int next_ps_ = 0;              // round robin, per shard
  int colocated_ = -1;
  std::vector<std::uint64_t> placed_bytes_;  // by ps
  std::vector<std::uint64_t> placed_shards_;
  std::vector<std::string> counters_;       // in order, those of an earlier process first
  std::set<std::string> created_counters_;  // by this process
  std::vector<std::string> groups_;
  PsContents contents_;
  SaveProgress save_;
  SaveTimes save_times_;
  transport::Subscriptions subscriptions_;
  mutable std::mutex scheduler_mutex_;
  std::shared_ptr<ClosureScheduler> scheduler_;
  bool scheduler_ended_ = false;
  std::map<std::string, std::weak_ptr<CheckpointedState>> states_;
  std::unique_ptr<RestorePoint> restore_point_;
};

}  // namespace capstan::strategy
