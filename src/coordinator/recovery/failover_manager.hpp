// failover_manager.hpp -- replaces dead ps by spares.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/runtime.hpp"
#include "protocol/failover.hpp"
#include "strategy/ps_contents.hpp"

namespace capstan::coordinator {

/// Used by the thread that drives the control fabric, except `role_of` and `standbys`; not inside progress().
/// The states are in the coordinator's record, from which a restarted coordinator resumes.
class FailoverManager {
 public:
  using Clock = std::chrono::steady_clock;

  FailoverManager(cluster::Runtime& runtime, const strategy::PsContents& contents);

  /// Fences the ps's process, which may only be stopped and resume later, and tells the next spare to replace
  /// it. Returns false if no spare can; then failure_reason() returns the reason. `dead` are the ranks of
  /// dead workers. Called repeatedly for a dead ps that was not restarted in time.
  bool advance(const cluster::Member& ps, const std::vector<std::int32_t>& dead, Clock::time_point now);
  const std::string& failure_reason(int ps) { return failure_reasons_[ps]; }

  /// Returns true if a spare was told to replace this ps and has not reported that it has.
  bool is_being_replaced(int ps) const;
  /// Returns true if the spare is alive and replaces no ps.
  bool is_standby(int rank) const;
  /// Returns the incarnation of the process that is the ps or is replacing it. Heartbeats of other
  /// incarnations are ignored.
  std::uint32_t incarnation_of(int ps) const;
  /// Returns true if the process of this incarnation may act as the ps. If another process has replaced it,
  /// tells it to exit and returns false.
  bool admits(const cluster::Member& ps, std::uint32_t incarnation);
  /// Records that the process of this incarnation has the shards of the ps. REQUIRES: the coordinator's
  /// record has its address.
  void on_ps_complete(int ps, std::uint32_t incarnation);
  /// Records the death of a ps and of the spare that had replaced it, if any.
  void on_ps_dead(int ps);
  /// Records the death of a spare in any state.
  void on_spare_dead(int rank);
  /// Records that a spare cannot replace its ps.
  void on_failover_failed(int rank, const std::string& why);

  /// Handles the report of a ps that its replica no longer follows it. Returns true if that replica will not
  /// replace the ps. May be called inside progress().
  bool drop_replica(const cluster::Member& ps);

  /// Returns the number of live spares that replace no ps. Any thread.
  int standbys() const;
  /// Returns a text such as "now ps 1" for a spare that has replaced a ps, and "" otherwise. Any thread.
  std::string role_of(int rank) const;

 private:
  using State = cluster::SpareRecord::State;
  struct Spare : cluster::SpareRecord {
    Clock::time_point deadline{};  // deadline of the failover in progress
  };
  Spare* find(State state, int ps);
  Spare* choose(const cluster::Member& ps);
  protocol::FailoverRequest request_for(const cluster::Member& ps) const;
  bool order_failover(Spare& spare, const cluster::Member& ps, const std::vector<std::int32_t>& dead,
                      Clock::time_point now);
  void set(Spare& spare, State state);
  void update_membership(const Spare& spare);
  /// Records the states, before any rank is notified.
  void record_states();

  cluster::Runtime& runtime_;
  const strategy::PsContents& contents_;
  mutable std::mutex mutex_;  // guards the states of spares
  std::vector<Spare> spares_;
  std::map<int, std::string> failure_reasons_;
};

}  // namespace capstan::coordinator
