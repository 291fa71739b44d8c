// replica_rendezvous.hpp -- where the replicas of one rank meet to combine their values.
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

/// Detects replicas that cannot come any more, so that the others do not wait for them. All functions but the
/// constructor may be called by any thread.
class ReplicaRendezvous {
 public:
  /// `combining(true)` and `combining(false)` are called around each combination, while the other replicas
  /// sleep.
  ReplicaRendezvous(int replicas, std::chrono::milliseconds timeout, std::function<void(bool)> combining);

  int size() const noexcept { return size_; }

  /// A run begins: every replica runs. REQUIRES: no replica of an earlier run still does.
  void begin();
  /// The function of this replica has returned, or has thrown if `failed`.
  void leave(int replica, bool failed);
  /// The run has ended: releases the last result.
  void end();

  /// Blocks until every replica has called it. The last one combines the values in the order of the replicas;
  /// all return that result or throw that exception. Throws Error: deadline_exceeded, naming the replicas
  /// that are missing; failed_precondition if another replica made another call or has returned; aborted if
  /// another has failed.
  std::shared_ptr<const void> meet(int replica, const detail::Collective& call);

  /// Returns the replicas that have not left.
  std::vector<int> running() const;
  /// Returns true if the replica received Error(aborted) because another had failed: its own error is a
  /// consequence.
  bool was_aborted(int replica) const;

 private:
  enum class State : std::uint8_t { running, returned, failed };

  // REQUIRE the mutex:
  State state(int replica) const { return states_[static_cast<std::size_t>(replica)]; }
  std::vector<int> select(const std::function<bool(int)>& condition) const;
  void combine(std::unique_lock<std::mutex>& lock);
  [[noreturn]] void throw_failure(bool own) const;
  void require_all_present(int replica, const std::string& call);
  void wait_for_others(int replica, const detail::Collective& call, std::unique_lock<std::mutex>& lock);

  const int size_;
  const std::chrono::milliseconds timeout_;
  const std::function<void(bool)> combining_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a meeting has ended, or a replica has left
  std::vector<State> states_;
  std::vector<bool> aborted_;
  std::uint64_t meeting_ = 0;
  bool broken_ = false;  // a replica has left a meeting: they are out of step until the run ends
  int arrived_ = 0;
  std::vector<const detail::Collective*> calls_;  // by replica; null until it arrives
  std::shared_ptr<const void> result_;
  std::exception_ptr failure_;
};

/// "replica 1", "replicas 0, 2"
std::string name_replicas(const std::vector<int>& replicas);

}  // namespace capstan::strategy
