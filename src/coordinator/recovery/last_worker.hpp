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

  /// `may_join`: whether workers may still join late.
  LastWorker(cluster::Runtime& runtime, ClosureQueue& queue, std::function<bool()> may_join)
      : runtime_(runtime), queue_(queue), may_join_(std::move(may_join)) {}

  /// A worker is dead or has left. If it was the last one, waits for another for --worker-wait, or breaks the
  /// queue down at once if none can come.
  void note_loss(const std::string& worker);
  /// Called in each round: breaks the queue down when that time is over. Starts it if there is no worker and
  /// no loss was noted, as in a restarted coordinator.
  void check();

 private:
  bool may_return() const;
  /// A worker joins once the ps that are dead have returned, whose own deadlines apply.
  bool joins_after_ps() const;

  cluster::Runtime& runtime_;
  ClosureQueue& queue_;
  std::function<bool()> may_join_;
  std::string last_;                           // name of the last worker
  std::optional<Clock::time_point> deadline_;  // while there is no worker
};

}  // namespace capstan::coordinator
