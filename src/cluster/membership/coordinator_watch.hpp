// coordinator_watch.hpp -- how a ps, worker, spare or evaluator waits for a coordinator that was killed.
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

  /// Called by the fabric's failure handler when the connection to the coordinator has failed.
  void on_connection_lost(const transport::Peer& peer);
  /// Ends the wait: this restarted worker reaches no ps, so no new coordinator would learn its address.
  void on_isolated();
  /// Called by a restarted ps. A coordinator that greets the ps records its new address. Until then, the ps
  /// does not wait for another coordinator, which could not find it.
  void expect_greeting() { address_known_ = false; }
  /// Handler of kHello to a ps.
  void on_greeting(const transport::Message& message);
  /// Handler of kCoordinatorReturned.
  void on_announcement(const transport::Message& message);
  /// Handler of the kHello by which a coordinator admits this worker: stores the coordinator's incarnation.
  /// Returns false if the message has none.
  bool on_admission(const transport::Message& message);
  /// Returns true if a new coordinator has announced itself, and this rank is not connected to it yet.
  bool has_announcement() const noexcept { return announcement_.has_value(); }
  /// Connects to the new coordinator, and returns its message. Not inside progress(). REQUIRES:
  /// has_announcement().
  CoordinatorReturned reconnect();
  /// Sends kCoordinatorKnown to the new coordinator.
  void acknowledge();
  /// Returns the reason to end, such as "coordinator 0 (rank 0 on n1) is dead", once the wait is over; else
  /// "".
  const std::string& stop_reason();
  /// Deadline of the wait; nothing while the coordinator is connected.
  std::optional<Clock::time_point> deadline() const noexcept { return deadline_; }
  /// Number of restarts of the current coordinator.
  std::int32_t incarnation() const noexcept { return incarnation_; }

 private:
  Runtime& runtime_;
  std::optional<CoordinatorReturned> announcement_;  // of a coordinator that is not connected yet
  std::optional<Clock::time_point> deadline_;        // set while the coordinator is not connected
  std::string name_;                                 // of the coordinator that is not connected
  std::string stop_reason_;
  bool isolated_ = false;      // no ps is reachable
  bool address_known_ = true;  // to the coordinator; false from expect_greeting() to the greeting
  std::int32_t incarnation_ = 0;
};

}  // namespace capstan::cluster
