// control_loop.hpp -- shares one fabric between threads: a thread that waits drives it; a keeper thread does
// while none waits.
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

/// A thread that waits for a message receives it without a wake-up of another thread, and a thread that sends
/// one sends it at once: a wake-up takes longer than a message.
class ControlLoop final : public Waiter {
 public:
  using Time = std::chrono::milliseconds;
  struct Round {
    bool something = false;  // a message has arrived or was sent
    Time rest{500};          // until the next round, at most
  };
  struct Polls {
    Backoff::Time alone;   // how long a thread polls before it sleeps, on a core of its own
    Backoff::Time shared;  // the same on a core that other threads need
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

  /// Makes at least one round, unless another thread makes them.
  bool wait(const std::function<bool()>& done, std::optional<Deadline> deadline) override;
  /// Runs a round now, or makes the thread that is in one run another.
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
  Polls polls_;

  std::mutex mutex_;
  std::condition_variable followers_;  // threads that wait while another leads
  std::condition_variable keeper_;
  Leader leader_ = Leader::none;
  std::uint64_t term_ = 0;  // of the leader; differs once there is another leader
  bool asleep_ = false;     // the leader sleeps
  bool again_ = false;      // another round was requested
  int following_ = 0;
  bool keeper_parked_ = false;
  Deadline last_wait_{};  // end of the last wait
  bool stopped_ = false;
  std::jthread thread_;
};

}  // namespace capstan::coordinator
