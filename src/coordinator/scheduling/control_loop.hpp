// control_loop.hpp -- shares one fabric between threads: a thread that waits drives it; if none waits, a
// keeper thread does.
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

/// Waking up a thread takes longer than a message. Therefore a thread that waits for a message receives it
/// itself, and a thread that sends a message does so at once.
class ControlLoop final : public Waiter {
 public:
  using Time = std::chrono::milliseconds;
  struct Round {
    bool progressed = false;  // a message has arrived or was sent
    Time rest{500};           // longest time until the next round
  };
  struct Polls {
    Backoff::Time alone;   // how long a thread polls before it sleeps, if no other thread needs its core
    Backoff::Time shared;  // the same if other threads need the core
  };

  /// `round` progresses the fabric and does all pending work; one thread at a time calls it.
  ControlLoop(transport::Fabric& fabric, std::function<Round()> round, Polls polls);
  ~ControlLoop() override { stop(); }
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  /// Starts the keeper, which calls `greet` first.
  void start(std::function<void()> greet);
  /// Ends the keeper and every wait, and blocks until no thread is in a round. Afterwards the caller owns the
  /// fabric. Not called by `round`.
  void stop();

  /// Waits as Waiter::wait does. Runs at least one round, unless another thread runs them.
  bool wait(const std::function<bool()>& done, std::optional<Deadline> deadline) override;
  /// Runs a round now, or makes the thread that is running a round run another one. While nudges are
  /// frequent, they also receive the messages: the keeper does not wake up for each.
  void nudge() override;
  void nudge_soon() override;
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
  Polls polls_;

  std::mutex mutex_;
  std::condition_variable followers_;  // threads that wait while another leads
  std::condition_variable keeper_;
  Leader leader_ = Leader::none;
  std::uint64_t term_ = 0;  // increased for each new leader
  bool asleep_ = false;     // the leader sleeps
  bool again_ = false;      // another round was requested
  int following_ = 0;
  bool keeper_parked_ = false;
  Deadline last_visit_{};    // end of the last round that nudge() ran
  Deadline keeper_rests_{};  // until then the keeper does not lead
  bool stopped_ = false;
  std::jthread thread_;
};

}  // namespace capstan::coordinator
