// thread.cpp -- wakes up, waits for a core, and executes the next task.
#include "simulate/thread.hpp"

#include <utility>

namespace capstan::simulate {

void Thread::run(double seconds, Simulation::Action done) {
  account();
  tasks_.push_back({seconds, std::move(done)});
  if (tasks_.size() > 1) return;
  const bool sleeps = simulation_.now() - idle_since_ > constants_.poll_time;
  if (!sleeps) return start();
  const double spread = constants_.wake_up_spread > 0 ? random_.exponential(constants_.wake_up_spread) : 0;
  simulation_.after(constants_.wake_up + spread, [this] { start(); });
}

void Thread::start() {
  cores_.add(tasks_.front().seconds, [this] {
    account();
    busy_ += tasks_.front().seconds;
    const Simulation::Action done = std::move(tasks_.front().done);
    tasks_.pop_front();
    idle_since_ = simulation_.now();
    if (!tasks_.empty()) start();
    done();
  });
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
