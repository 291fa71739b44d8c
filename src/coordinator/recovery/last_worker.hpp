// last_worker.hpp -- ends a job whose workers are all dead, unless one returns in time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "cluster/runtime.hpp"
#include "coordinator/scheduling/closure_queue.hpp"

namespace capstan::coordinator {

/// Used by the thread that drives the control loop.
class LastWorker {
 public:
  using Clock = std::chrono::steady_clock;

  /// `may_join` returns true if workers may still join late.
  LastWorker(cluster::Runtime& runtime, ClosureQueue& queue, std::function<bool()> may_join)
      : runtime_(runtime), queue_(queue), may_join_(std::move(may_join)) {}

  /// Records that a worker has died or left. If it was the last one, starts the timeout --worker-wait or, if
  /// no worker can return or join, breaks the queue down at once.
  void note_loss(const std::string& worker);
  /// Breaks the queue down when the timeout has passed. Starts the timeout if there is no worker and no
  /// loss was recorded, as in a restarted coordinator. Called in each round.
  void check();

 private:
  bool may_return() const;
  /// Returns true if a worker is waiting to join until dead ps return; the deadlines of these ps apply.
  bool joins_after_ps() const;

  cluster::Runtime& runtime_;
  ClosureQueue& queue_;
  std::function<bool()> may_join_;
  std::string last_;                           // name of the last worker
  std::optional<Clock::time_point> deadline_;  // set while there is no worker
};

}  // namespace capstan::coordinator
