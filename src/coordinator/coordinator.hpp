// coordinator.hpp -- hands closures to workers and collects what they return.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "coordinator/closure_queue.hpp"
#include "strategy/strategy.hpp"

namespace capstan::coordinator {

/// The dispatcher thread owns the control fabric: it keeps up to --max-inflight-per-worker closures on every
/// worker and sleeps otherwise.
class Coordinator {
 public:
  explicit Coordinator(strategy::Strategy& strategy);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  std::shared_ptr<Result> schedule(std::uint32_t function, std::vector<std::byte> arguments);
  /// For one worker alone; see ClosureQueue::put_for. Throws Error(out_of_range).
  std::shared_ptr<Result> schedule_on(int worker, std::uint32_t function, std::vector<std::byte> arguments);
  ClosureQueue& queue() noexcept { return queue_; }
  std::uint64_t next_resource() noexcept { return strategy_.next_resource(); }
  /// Of workers that are there now, in order.
  std::vector<int> worker_indices() const;
  int workers() const noexcept { return alive_; }

 private:
  struct Worker {
    transport::Peer* peer = nullptr;
    bool alive = true;
    std::size_t known_variables = 0;
    std::size_t known_resources = 0;
    std::map<std::uint64_t, Closure> running;
  };

  void start_embedded_workers();
  void run();
  bool dispatch_for_one();
  Worker* least_busy();
  bool dispatch();
  void send(Worker& worker, Closure closure);
  void on_done(const transport::Message& message);
  void on_failure(transport::Peer& peer);
  void tell_every_ps_of_death(std::int32_t rank);

  strategy::Strategy& strategy_;
  cluster::Runtime& runtime_;
  ClosureQueue queue_;
  std::size_t inflight_limit_;
  std::vector<Worker> workers_;
  std::size_t next_worker_ = 0;
  std::atomic<int> alive_{0};
  std::atomic<bool> over_{false};
  std::vector<std::jthread> embedded_workers_;
  std::jthread dispatcher_;  // last: it uses all of the above
};

}  // namespace capstan::coordinator
