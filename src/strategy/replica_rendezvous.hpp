// replica_rendezvous.hpp -- collectives among the replicas of one rank.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capstan/replica.hpp"

namespace capstan::strategy {

/// Detects replicas that have returned or failed, so that the others do not wait for them. Thread-safe.
class ReplicaRendezvous {
 public:
  /// Calls `combining(true)` before the values of a collective are combined, and `combining(false)` after
  /// that. The other replicas wait meanwhile.
  ReplicaRendezvous(int replicas, std::chrono::milliseconds timeout, std::function<void(bool)> combining);

  int size() const noexcept { return size_; }

  /// Begins a run of all replicas. REQUIRES: no replica of an earlier run is still running.
  void begin();
  /// Records that the function of this replica has returned or, if `failed`, thrown.
  void leave(int replica, bool failed);
  /// Ends the run and releases the last result.
  void end();

  /// Blocks until every replica has called this function. The last caller combines the values in the order
  /// of the replicas. All callers return the result of the combination, or throw its exception. Throws Error:
  /// deadline_exceeded, with the missing replicas; failed_precondition if a replica made a different call or
  /// has returned. Throws Error(aborted) if another replica has failed, or the replicas are out of step.
  std::shared_ptr<const void> run_collective(int replica, const detail::Collective& call);

  /// Returns the replicas for which leave() was not called in this run.
  std::vector<int> running() const;
  /// Returns true if this replica received Error(aborted), so another replica caused the failure.
  bool was_aborted(int replica) const;

 private:
  enum class State : std::uint8_t { running, returned, failed };

  // All of these require that the caller holds the mutex.
  State state(int replica) const { return states_[static_cast<std::size_t>(replica)]; }
  std::vector<int> select(const std::function<bool(int)>& condition) const;
  void combine(std::unique_lock<std::mutex>& lock);
  [[noreturn]] void throw_failure(bool combined_here) const;
  void require_all_present(int replica, const std::string& call);
  void wait_for_others(int replica, const detail::Collective& call, std::unique_lock<std::mutex>& lock);

  const int size_;
  const std::chrono::milliseconds timeout_;
  const std::function<void(bool)> combining_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a collective has completed, or a replica has left
  std::vector<State> states_;
  std::vector<bool> aborted_;
  std::uint64_t round_ = 0;
  // A call timed out or was different on some replica, or a replica returned too early. The replicas are out
  // of step until the next run.
  bool broken_ = false;
  int arrived_ = 0;
  std::vector<const detail::Collective*> calls_;  // by replica; null until it arrives
  std::shared_ptr<const void> result_;
  std::exception_ptr failure_;
};

/// Returns the list for a message, such as "replica 1" or "replicas 0, 2".
std::string name_replicas(const std::vector<int>& replicas);

}  // namespace capstan::strategy
