// queue.cpp -- starts the next job when a server becomes idle.
#include "simulate/queue.hpp"

#include <utility>

#include "capstan/error.hpp"

namespace capstan::simulate {

Queue::Queue(Simulation& simulation, std::size_t servers, RandomSource* order)
    : simulation_(simulation), servers_(servers), order_(order) {
  if (servers == 0) {
    throw Error(Code::invalid_argument, "cannot simulate a queue: it has 0 servers, expected at least 1");
  }
}

void Queue::add(Service service, Simulation::Action done) {
  account();
  if (busy_ < servers_) {
    start({std::move(service), std::move(done)});
  } else {
    waiting_.push_back({std::move(service), std::move(done)});
  }
}

void Queue::start(Job job) {
  simulation_.after(job.service(), [this, done = std::move(job.done)] {
    account();
    --busy_;
    if (!waiting_.empty()) {
      if (order_ != nullptr) {
        const double drawn = order_->uniform() * static_cast<double>(waiting_.size());
        std::swap(waiting_.front(), waiting_[static_cast<std::size_t>(drawn)]);
      }
      Job next = std::move(waiting_.front());
      waiting_.pop_front();
      start(std::move(next));
    }
    done();
  });
  ++busy_;
}

void Queue::account() {
  const double elapsed = simulation_.now() - accounted_;
  accounted_ = simulation_.now();
  waiting_area_ += elapsed * static_cast<double>(waiting_.size());
  busy_area_ += elapsed * static_cast<double>(busy_);
}

double Queue::mean_waiting() const {
  const double now = simulation_.now();
  if (now <= 0) return 0;
  return (waiting_area_ + (now - accounted_) * static_cast<double>(waiting_.size())) / now;
}

double Queue::utilization() const {
  const double now = simulation_.now();
  if (now <= 0) return 0;
  return (busy_area_ + (now - accounted_) * static_cast<double>(busy_)) / now / static_cast<double>(servers_);
}

}  // namespace capstan::simulate
