// replica_threads.hpp -- host threads of the replicas of one rank, kept between runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace capstan::strategy {

/// Replica 0 is the thread that starts the rounds and has no thread here.
class ReplicaThreads {
 public:
  /// `work` is called with the number of each replica but 0, once a round; it throws nothing.
  ReplicaThreads(int replicas, std::function<void(int replica)> work);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  /// Starts the threads on the first call. Throws Error(resource_exhausted) if the system does not start
  /// them.
  void ensure_started();
  /// Begins a round. REQUIRES: the threads run, and the previous round has ended.
  void begin_round();
  /// Blocks until every thread has ended the round; returns false after `timeout`.
  bool wait(std::chrono::milliseconds timeout);

 private:
  void serve(int replica, const std::stop_token& stop);

  const int replicas_;
  const std::function<void(int)> work_;
  std::mutex mutex_;
  std::condition_variable_any begun_;
  std::condition_variable ended_;
  std::uint64_t round_ = 0;
  int running_ = 0;
  std::vector<std::jthread> threads_;  // last: they use the above
};

}  // namespace capstan::strategy
