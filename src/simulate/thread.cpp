// thread.cpp -- wakes up, waits for a core, and executes the next task or polls.
#include "simulate/thread.hpp"

#include <utility>

namespace capstan::simulate {

void Thread::run(double seconds, Simulation::Action done) {
  account();
  tasks_.push_back({seconds, std::move(done)});
  if (competes_) return;
  competes_ = true;
  const bool sleeps = simulation_.now() - idle_since_ > constants_.poll_time;
  if (!sleeps) return compete();
  const double spread = constants_.wake_up_spread > 0 ? random_.exponential(constants_.wake_up_spread) : 0;
  simulation_.after(constants_.wake_up + spread, [this] { compete(); });
}

/// Waits for a core, for the next task or for polls.
void Thread::compete() {
  cores_.add([this] { return begin(); }, [this] { end(); });
}

double Thread::begin() {
  runs_ = !tasks_.empty();
  return runs_ ? tasks_.front().seconds : constants_.poll_slice;
}

void Thread::end() {
  if (runs_) {
    account();
    busy_ += tasks_.front().seconds;
    const Simulation::Action done = std::move(tasks_.front().done);
    tasks_.pop_front();
    idle_since_ = simulation_.now();
    done();  // may add the next task
  }
  const bool polls =
      constants_.poll_slice > 0 && !blocked_ && simulation_.now() - idle_since_ < constants_.poll_time;
  if (!tasks_.empty() || polls) return compete();
  competes_ = false;
}

void Thread::account() {
  area_ += static_cast<double>(tasks_.size()) * (simulation_.now() - accounted_);
  accounted_ = simulation_.now();
}

double Thread::mean_tasks() const noexcept {
  const double now = simulation_.now();
  if (now <= 0) return 0;
  return (area_ + static_cast<double>(tasks_.size()) * (now - accounted_)) / now;
}

}  // namespace capstan::simulate
