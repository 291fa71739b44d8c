// coordinator_watch.hpp -- how a ps, a worker or an evaluator waits for a coordinator that was killed.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cluster/membership/coordinator_memory.hpp"
#include "transport/fabric.hpp"

namespace capstan::cluster {

class Runtime;

/// Used by the thread that drives the control fabric.
class CoordinatorWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CoordinatorWatch(Runtime& runtime) : runtime_(runtime) {}

  /// Of the fabric's failure handler: the connection to the coordinator has ended.
  void lose(const transport::Peer& peer);
  /// A restarted worker reaches no ps, and so will never hear of a new coordinator: it stops waiting for one.
  void reach_none();
  /// A restarted ps has a new address, which only the coordinator that greets it records. Until then, no
  /// coordinator that is started later could find this process, so it does not wait for one.
  void expect_greeting() { known_ = false; }
  /// Handler of the transport::kHello to a ps.
  void greet(const transport::Message& message);
  /// Handler of transport::kCoordinatorReturned.
  void hear(const transport::Message& message);
  /// Handler of the transport::kHello by which a coordinator takes in this worker, which has connected to it:
  /// which of its processes that is. Returns false for a message without that.
  bool meet(const transport::Message& message);
  /// One has come that is not connected to yet.
  bool news() const noexcept { return back_.has_value(); }
  /// Connects to it, and says what it has said. Not inside progress(). REQUIRES: news().
  CoordinatorBack take_up();
  /// The answer to it: see transport::kCoordinatorKnown.
  void answer();
  /// It has not come back in time: "coordinator 0 (rank 0 on n1) is gone"; empty until then.
  const std::string& verdict();
  /// Whom one waits for has to be here by then.
  std::optional<Clock::time_point> until() const noexcept { return until_; }
  /// How often the one that is there has been started again.
  std::int32_t incarnation() const noexcept { return incarnation_; }

 private:
  Runtime& runtime_;
  std::optional<CoordinatorBack> back_;
  std::optional<Clock::time_point> until_;
  std::string lost_;
  std::string verdict_;
  bool alone_ = false;
  bool known_ = true;  // where this process is; false between expect_greeting() and the greeting
  std::int32_t incarnation_ = 0;
};

}  // namespace capstan::cluster
