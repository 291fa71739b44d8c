// failover_manager.hpp -- spares, and the ps that they replace.
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

  /// Called repeatedly while a ps is dead, once the time for its restart has passed: fences its process,
  /// which may be stopped and resume, and tells the next spare to replace it. `dead`: ranks of dead workers.
  /// Returns false if no spare can replace it; then `why` returns the reason.
  bool advance(const cluster::Member& ps, const std::vector<std::int32_t>& dead, Clock::time_point now);
  const std::string& why(int ps) { return why_[ps]; }

  /// Returns true if a spare was told to replace this ps and has not reported that it has.
  bool is_being_replaced(int ps) const;
  /// Returns true if the spare is alive and replaces no ps.
  bool is_standby(int rank) const;
  /// Incarnation of the process that is the ps, or is about to be. Heartbeats of others are ignored.
  std::uint32_t incarnation_of(int ps) const;
  /// A process claims to be this ps. Returns false if another process has replaced it; tells it to end.
  bool admits(const cluster::Member& ps, std::uint32_t incarnation);
  /// The process of this incarnation has the shards of the ps. REQUIRES: the coordinator's record has its
  /// address.
  void on_ps_complete(int ps, std::uint32_t incarnation);
  /// The ps is dead, and with it the spare that had replaced it, if any.
  void on_ps_dead(int ps);
  /// A spare is dead, whatever its state.
  void on_spare_dead(int rank);
  /// A spare reports that it cannot replace the ps.
  void on_failover_failed(int rank, const std::string& why);

  /// A ps reports that its replica no longer follows it. Returns true if that replica will not replace it.
  /// Also inside progress().
  bool drop_replica(const cluster::Member& ps);

  /// Number of live spares that replace no ps. Any thread.
  int standbys() const;
  /// Returns "now ps 1" for a spare that has replaced it, else "". Any thread.
  std::string role_of(int rank) const;

 private:
  using State = cluster::SpareRecord::State;
  struct Spare : cluster::SpareRecord {
    Clock::time_point deadline{};  // of a failover in progress
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
  std::map<int, std::string> why_;
};

}  // namespace capstan::coordinator
