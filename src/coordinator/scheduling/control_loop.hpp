// control_loop.hpp -- several threads, one fabric: whoever waits for something drives it, and a keeper does
// while nobody waits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/backoff.hpp"
#include "coordinator/scheduling/result.hpp"
#include "transport/fabric.hpp"

namespace capstan::coordinator {

/// A message that is waited for by the thread that drives wakes nobody, and one that is sent by the thread
/// that has it is sent at once: each thread that hands over to another costs a wake-up, which takes longer
/// than the message.
class ControlLoop final : public Waiter {
 public:
  using Time = std::chrono::milliseconds;
  struct Round {
    bool something = false;  // had arrived or was sent
    Time rest{500};          // at most, until the next round, when nothing comes up
  };
  struct Looks {
    Backoff::Time alone;   // how long a thread that waits looks before it sleeps, on a core of its own
    Backoff::Time shared;  // and on one that others want
  };

  /// `round` progresses the fabric and does what there is to do; one thread at a time calls it.
  ControlLoop(transport::Fabric& fabric, std::function<Round()> round, Looks looks);
  ~ControlLoop() override { stop(); }
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  /// Starts the keeper, which calls `greet` first.
  void start(std::function<void()> greet);
  /// Ends it, and every wait. The fabric is the caller's from then on.
  void stop();

  /// Makes at least one round, unless another thread makes them.
  bool wait(const std::function<bool()>& done, std::optional<Deadline> deadline) override;
  /// A round now; or another one by who is in one.
  void nudge() override;
  void nudge_sleeper() override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Leader : std::uint8_t { none, keeper, waiter, visitor };

  std::optional<bool> lead(Lock& lock, Leader who, const std::function<bool()>& done,
                           std::optional<Deadline> deadline);
  void leave(bool slept);
  void keep();

  transport::Fabric& fabric_;
  std::function<Round()> round_;
  Looks looks_;

  std::mutex mutex_;
  std::condition_variable followers_;  // who waits while another leads
  std::condition_variable keeper_;
  Leader leader_ = Leader::none;
  std::uint64_t term_ = 0;  // of the leader; another one has been elected when it differs
  bool asleep_ = false;     // the leader is
  bool again_ = false;      // a round is asked for
  int following_ = 0;
  bool keeper_parked_ = false;
  Deadline last_wait_{};  // when a thread that waited left
  bool stopped_ = false;
  std::jthread thread_;
};

}  // namespace capstan::coordinator
