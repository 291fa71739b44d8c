// replica_group.hpp -- the replicas of one rank: runs a function on each of them.
//
// While a replica runs, CUDA calls of its thread use its GPU.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capstan/replica.hpp"
#include "strategy/replica_gpus.hpp"
#include "strategy/replica_rendezvous.hpp"
#include "strategy/replica_threads.hpp"

namespace capstan {
class CancellationRequest;
}  // namespace capstan

namespace capstan::strategy {

class Context;
class Strategy;

class ReplicaGroup {
 public:
  /// Reads `--replicas`, `--replica-device` and `--wait-timeout` from the settings of the context's rank.
  /// Throws Error if a worker does not have enough GPUs.
  explicit ReplicaGroup(Context& context);
  ReplicaGroup(const ReplicaGroup&) = delete;
  ReplicaGroup& operator=(const ReplicaGroup&) = delete;

  int size() const noexcept { return rendezvous_.size(); }
  Context& context() noexcept { return context_; }
  std::chrono::milliseconds timeout() const noexcept { return timeout_; }
  /// Returns the GPUs of the replicas. Throws Error(failed_precondition) if the replicas have no GPUs.
  ReplicaGpus& gpus();
  ReplicaRendezvous& rendezvous() noexcept { return rendezvous_; }

  /// Runs `body` once on each replica and returns when all have ended. Throws the error of the failed replica
  /// with the lowest number; replicas that were aborted because another one failed do not count. Threads
  /// cannot be stopped: if a replica does not end, waits without limit and logs its number.
  void run(const std::function<void(ReplicaContext&)>& body);

  /// Makes later runs execute in the scope of `strategy`, on every replica. It outlives these runs.
  void run_in_scope_of(Strategy& strategy) noexcept { strategy_ = &strategy; }

  /// Logs a warning, once for each name `call`, if this is the coordinator's group and
  /// allow_run_without_coordinator(true) was not called.
  void warn_unless_scheduled(const std::string& call);
  void allow_run_without_coordinator(bool allow) noexcept { allowed_ = allow; }

 private:
  void work(int replica);
  void prepare_gpus();
  std::exception_ptr await_gpus() noexcept;
  void throw_first_error(const std::exception_ptr& gpu_error);

  Context& context_;
  const std::chrono::milliseconds timeout_;
  const bool on_coordinator_;
  const bool wants_gpus_;
  std::optional<ReplicaGpus> gpus_;
  Strategy* strategy_ = nullptr;  // null on a worker
  bool allowed_ = false;
  std::set<std::string> warned_;
  std::atomic<bool> active_ = false;
  // State of the current run, set before its round begins:
  const std::function<void(ReplicaContext&)>* body_ = nullptr;
  const CancellationRequest* cancellation_ = nullptr;  // of the function that called run
  std::vector<std::exception_ptr> errors_;             // by replica, each written by its thread
  ReplicaRendezvous rendezvous_;
  ReplicaThreads threads_;  // last: the threads use all of the above
};

}  // namespace capstan::strategy
