// replica_group.hpp -- the replicas of one rank: host threads that are kept between runs, and where they
// meet.
//
// Replica 0 is the thread that calls `run`; the others sleep in between. While a replica runs, CUDA's calls
// of its thread go to its GPU.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include "capstan/replica.hpp"
#include "strategy/replica_gpus.hpp"

namespace capstan {
class CancellationRequest;
}  // namespace capstan

namespace capstan::strategy {

class Context;
class Strategy;

class ReplicaGroup {
 public:
  /// `--replicas`, `--replica-device` and `--wait-timeout` of the context's rank. Throws Error where a worker
  /// has not the GPUs for them.
  explicit ReplicaGroup(Context& context);
  ~ReplicaGroup();
  ReplicaGroup(const ReplicaGroup&) = delete;
  ReplicaGroup& operator=(const ReplicaGroup&) = delete;

  int size() const noexcept { return size_; }
  Context& context() noexcept { return context_; }
  std::chrono::milliseconds timeout() const noexcept { return timeout_; }
  /// Throws Error(failed_precondition) when the replicas are host threads.
  ReplicaGpus& gpus();

  /// Runs `body` once for each replica and returns when all have ended; throws the first error by replica
  /// number, not counting those of replicas that only ended because another had. Host threads cannot be
  /// stopped, so a replica that computes for ever is waited for, and named in the log.
  void run(const std::function<void(ReplicaContext&)>& body);

  /// Every replica comes with a value; one of them combines all, and everybody gets that result, or that
  /// exception. Throws Error: deadline_exceeded naming replicas that have not come, failed_precondition for
  /// one that came with another call or has returned, aborted when one has failed.
  std::shared_ptr<const void> meet(int replica, const detail::Collective& call);

  /// From now on `run` is in that strategy's scope, on every replica. The strategy outlives its runs.
  void run_in_scope_of(Strategy& strategy) noexcept { strategy_ = &strategy; }

  /// Logs once for each call that it runs on the coordinator, unless that is allowed.
  void warn_unless_scheduled(const std::string& call);
  void allow_run_without_coordinator(bool allow) noexcept { allowed_ = allow; }

 private:
  enum class State { running, returned, failed };

  void start_threads();
  void live(int replica, const std::stop_token& stop);
  void work(int replica);
  void get_gpus_ready();
  std::exception_ptr await_gpus() noexcept;
  void throw_first_error(const std::exception_ptr& of_gpus);
  State state(int replica) const { return states_[static_cast<std::size_t>(replica)]; }
  std::vector<int> replicas_not(const std::function<bool(int)>& here) const;
  void combine(std::unique_lock<std::mutex>& lock);
  [[noreturn]] void throw_failure(bool own) const;
  /// Throws when the others cannot all come any more.
  void require_everybody(int replica, const std::string& call);

  Context& context_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const bool on_coordinator_;
  const bool wants_gpus_;
  std::optional<ReplicaGpus> gpus_;
  Strategy* strategy_ = nullptr;  // null on a worker
  bool allowed_ = false;
  std::set<std::string> warned_;

  std::mutex mutex_;
  std::condition_variable_any start_;
  std::condition_variable ended_;
  std::condition_variable met_;
  std::atomic<bool> active_ = false;
  std::uint64_t round_ = 0;  // of runs
  const std::function<void(ReplicaContext&)>* body_ = nullptr;
  const CancellationRequest* cancellation_ = nullptr;  // of the function that called run
  int running_ = 0;
  std::vector<State> states_;
  std::vector<std::exception_ptr> errors_;
  std::vector<bool> told_;  // that another had failed: what it throws is no news

  std::uint64_t meeting_ = 0;
  bool broken_ = false;  // a replica has left a meeting: they are out of step until the run ends
  int arrived_ = 0;
  std::vector<const detail::Collective*> calls_;  // by replica, null until it arrives
  std::shared_ptr<const void> result_;
  std::exception_ptr failure_;

  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace capstan::strategy
