// replica_threads.cpp -- threads that sleep between rounds.
#include "strategy/replica_threads.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"

namespace capstan::strategy {

ReplicaThreads::ReplicaThreads(int replicas, std::function<void(int)> work)
    : replicas_(replicas), work_(std::move(work)) {}

ReplicaThreads::~ReplicaThreads() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void ReplicaThreads::ensure_started() {
  if (!threads_.empty()) return;
  try {
    for (int replica = 1; replica < replicas_; ++replica) {
      threads_.emplace_back([this, replica, tag = log::rank_tag()](const std::stop_token& stop) {
        log::set_rank_tag(tag);
        serve(replica, stop);
      });
    }
  } catch (const std::system_error& error) {
    const std::size_t started = threads_.size();
    threads_.clear();
    throw Error(Code::resource_exhausted,
                fmt::format("--replicas {}: cannot start a thread after {} of them: {}", replicas_, started,
                            error.what()));
  }
}

void ReplicaThreads::begin_round() {
  {
    const std::lock_guard lock(mutex_);
    running_ = replicas_ - 1;
    ++round_;
  }
  begun_.notify_all();
}

bool ReplicaThreads::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, timeout, [this] { return running_ == 0; });
}

void ReplicaThreads::serve(int replica, const std::stop_token& stop) {
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!begun_.wait(lock, stop, [&] { return round_ != seen; })) return;
      seen = round_;
    }
    work_(replica);
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) ended_.notify_one();
  }
}

}  // namespace capstan::strategy
