// ps_pulse.hpp -- a ps says that it can be reached, and notices when the coordinator cannot.
#pragma once

#include <chrono>

#include "cluster/runtime.hpp"
#include "cluster/silence.hpp"
#include "transport/fabric.hpp"

namespace capstan::store {

/// From the coordinator's first kHeartbeat on. Of the ps's thread.
class PsPulse {
 public:
  using Clock = std::chrono::steady_clock;

  explicit PsPulse(cluster::Runtime& runtime);
  /// Handler of kHeartbeat: it has heard this ps, or will listen no more.
  void take(const transport::Message& message);
  /// Often: once a period it says that this ps runs.
  void beat();
  /// Before work that takes longer than the period: silence means nothing until the next beat.
  void be_busy();
  /// Nothing has come from the coordinator for --wait-timeout, though it was told to answer.
  bool is_alone() { return silence_.too_long(Clock::now()); }
  /// There is a new coordinator, which has not spoken yet.
  void excuse() { silence_.excuse(); }
  /// Between two beats; a long time when nobody listens.
  std::chrono::milliseconds period() const noexcept;

 private:
  void send(bool busy);

  cluster::Runtime& runtime_;
  std::chrono::milliseconds period_;
  cluster::Silence silence_;
  Clock::time_point next_{};
};

}  // namespace capstan::store
