// receiver.cpp -- sleeps on the fabric's file descriptors between two messages.
#include "strategy/receiver.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "transport/fabric.hpp"

namespace capstan::strategy {
namespace {

/// Longest sleep. Another thread that progresses the fabric may consume the event for which this one sleeps.
constexpr std::chrono::milliseconds kReceiverSleep{1};
/// Pause where the fabric cannot sleep, or another thread needs the client. A ps sends 60 KiB in this time at
/// 10 Gbit/s.
constexpr std::chrono::microseconds kReceiverPause{50};
/// Linux delays the end of a sleep by up to 50 us by default.
constexpr unsigned long kTimerSlackNanoseconds = 1000;

}  // namespace

void Receiver::start() {
  if (active()) return;
  const std::lock_guard lock(mutex_);
  if (cannot_start_) return;
  if (!thread_.joinable()) {
    try {
      thread_ = std::jthread([this, tag = log::rank_tag()](const std::stop_token& stop) {
        log::set_rank_tag(tag);
        serve(stop);
      });
    } catch (const std::system_error& error) {
      cannot_start_ = true;
      log::warn(
          "{}: cannot start a thread, so rows do not arrive while the program computes; raise the limit "
          "of processes (ulimit -u)",
          error.what());
      return;
    }
  }
  active_.store(true, std::memory_order_release);
  started_.notify_one();
}

std::unique_lock<std::recursive_mutex> Receiver::lock_client() {
  std::unique_lock lock(client_mutex_, std::try_to_lock);
  if (lock) return lock;
  ++callers_;
  lock.lock();
  --callers_;
  return lock;
}

void Receiver::serve(const std::stop_token& stop) {
  (void)prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds, 0, 0, 0);  // on failure, pauses take longer
  // A batch thread that wakes up takes an idle core, but does not interrupt the computation (sched(7)). Rows
  // stay in the socket then, until a core is idle or the program waits for them.
  const sched_param unused{};
  (void)sched_setscheduler(0, SCHED_BATCH, &unused);
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!started_.wait(lock, stop, [this] { return active(); }) || stop.stop_requested()) return;
    }
    try {
      receive(stop);
    } catch (const std::exception& error) {
      const std::lock_guard lock(client_mutex_);
      if (!std::exchange(warned_, true))
        log::warn("{}: rows of reads in flight arrive only during other calls", error.what());
      active_.store(false, std::memory_order_release);
    }
  }
}

void Receiver::receive(const std::stop_token& stop) {
  bool armed = false;
  while (!stop.stop_requested() && progress(armed)) {
    if (armed) {
      client_.runtime().data().sleep(kReceiverSleep);
    } else {
      std::this_thread::sleep_for(kReceiverPause);
    }
  }
}

bool Receiver::progress(bool& armed) {
  const std::lock_guard lock(client_mutex_);
  transport::Fabric& fabric = client_.runtime().data();
  while (fabric.progress() != 0 && callers_ == 0) {
  }
  if (!client_.reads_in_flight()) {
    active_.store(false, std::memory_order_release);  // a caller that reads false sees all rows
    return false;
  }
  armed = callers_ == 0 && fabric.arm();
  return true;
}

}  // namespace capstan::strategy
