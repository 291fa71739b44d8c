// control_loop.cpp -- a leader and followers; a keeper that sleeps can be replaced as leader.
#include "coordinator/scheduling/control_loop.hpp"

#include <algorithm>
#include <utility>

namespace capstan::coordinator {
namespace {

using Clock = std::chrono::steady_clock;

/// How long the keeper does not lead after a thread has waited, which is likely to wait again soon. Also the
/// longest delay of a message if no thread waits or nudges.
constexpr std::chrono::milliseconds kKeeperRests{1};
/// The same after a nudge, if another one preceded it by less than this: the next one is likely to receive
/// the answers. Also the longest delay of work that nudge_soon() has announced.
constexpr std::chrono::microseconds kKeeperRestsAfterNudges{100};

}  // namespace

ControlLoop::ControlLoop(transport::Fabric& fabric, std::function<Round()> round, Polls polls)
    : fabric_(fabric), round_(std::move(round)), polls_(polls) {}

void ControlLoop::start(std::function<void()> greet) {
  thread_ = std::jthread([this, greet = std::move(greet)] {
    greet();
    keep();
  });
}

void ControlLoop::stop() {
  {
    const Lock lock(mutex_);
    if (std::exchange(stopped_, true)) return;  // the fabric may be destroyed
    followers_.notify_all();
    keeper_.notify_all();
  }
  fabric_.wake();
  if (thread_.joinable()) thread_.join();
  Lock lock(mutex_);
  ++following_;
  followers_.wait(lock, [this] { return leader_ == Leader::none; });
  --following_;
}

/// Runs rounds until `done` is true, the deadline passes or the loop is stopped; returns whether `done` is
/// true. Returns nullopt if another thread has become the leader. REQUIRES: no thread leads, or the keeper
/// leads and sleeps.
std::optional<bool> ControlLoop::lead(Lock& lock, Leader who, const std::function<bool()>& done,
                                      std::optional<Deadline> deadline) {
  const std::uint64_t term = ++term_;
  leader_ = who;
  asleep_ = false;
  bool slept = false;
  Backoff backoff(polls_.alone, polls_.shared);
  while (true) {
    again_ = false;
    lock.unlock();
    const Round round = round_();
    const bool is_done = done();
    const bool look_again = round.progressed || is_done || (who == Leader::waiter && backoff.pause());
    const auto now = look_again ? Deadline{} : Clock::now();
    lock.lock();
    if (round.progressed) {
      backoff.reset();
      if (following_ > 0) followers_.notify_all();
    }
    if (is_done || stopped_ || (!look_again && deadline && now >= *deadline)) {
      leave(slept);
      return is_done;
    }
    if (look_again || again_ || !fabric_.arm()) continue;
    asleep_ = slept = true;
    Time rest = round.rest;
    if (deadline) rest = std::min(rest, std::chrono::ceil<Time>(*deadline - now));
    lock.unlock();
    fabric_.sleep(rest);
    lock.lock();
    if (term_ != term) {
      if (asleep_) fabric_.wake();  // the wake-up may have been for the thread that sleeps now
      return std::nullopt;
    }
    asleep_ = false;
    if (stopped_) {
      leave(slept);
      return false;
    }
  }
}

void ControlLoop::leave(bool slept) {
  if (leader_ == Leader::waiter) keeper_rests_ = Clock::now() + kKeeperRests;
  leader_ = Leader::none;
  if (following_ > 0) followers_.notify_all();
  // A thread that has slept is unlikely to wait again soon, so the keeper leads.
  if (slept && keeper_parked_) keeper_.notify_one();
}

bool ControlLoop::wait(const std::function<bool()>& done, std::optional<Deadline> deadline) {
  Lock lock(mutex_);
  while (!stopped_) {
    if (leader_ == Leader::none || (leader_ == Leader::keeper && asleep_)) {
      if (const auto is_done = lead(lock, Leader::waiter, done, deadline)) return *is_done;
      continue;
    }
    if (done()) return true;
    ++following_;
    if (deadline) {
      followers_.wait_until(lock, *deadline);
    } else {
      followers_.wait(lock);
    }
    --following_;
    if (deadline && Clock::now() >= *deadline) break;
  }
  return done();
}

void ControlLoop::nudge() {
  Lock lock(mutex_);
  if (stopped_) return;
  again_ = true;
  if (leader_ == Leader::waiter && asleep_) fabric_.wake();
  if (leader_ != Leader::none && !(leader_ == Leader::keeper && asleep_)) return;
  leader_ = Leader::visitor;
  ++term_;
  asleep_ = false;
  while (std::exchange(again_, false)) {
    lock.unlock();
    round_();
    lock.lock();
  }
  leader_ = Leader::none;
  const auto now = Clock::now();
  if (now < last_visit_ + kKeeperRestsAfterNudges)
    keeper_rests_ = std::max(keeper_rests_, now + kKeeperRestsAfterNudges);
  last_visit_ = now;
  if (following_ > 0) followers_.notify_all();
  if (keeper_parked_) keeper_.notify_one();
}

void ControlLoop::nudge_soon() {
  const Lock lock(mutex_);
  const auto latest = Clock::now() + kKeeperRestsAfterNudges;
  if (keeper_rests_ <= latest) return;
  keeper_rests_ = latest;
  keeper_.notify_one();
}

/// Also wakes a keeper that is no longer the leader but still sleeps until the previous deadline.
void ControlLoop::nudge_sleeper() {
  nudge();
  fabric_.wake();
}

void ControlLoop::keep() {
  Lock lock(mutex_);
  while (!stopped_) {
    if ((leader_ == Leader::waiter && asleep_) || leader_ == Leader::visitor) {
      keeper_parked_ = true;
      keeper_.wait(lock);
      keeper_parked_ = false;
    } else if (leader_ != Leader::none) {
      keeper_.wait_for(lock, kKeeperRests);
    } else if (Clock::now() < keeper_rests_) {
      keeper_.wait_until(lock, keeper_rests_);
    } else {
      (void)lead(
          lock, Leader::keeper, [] { return false; }, std::nullopt);
    }
  }
}

}  // namespace capstan::coordinator
