// coordinator_actor.hpp -- the coordinator: one thread dispatches closures and receives results and
// heartbeats.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "simulate/host.hpp"
#include "simulate/job_model.hpp"
#include "simulate/thread.hpp"

namespace capstan::simulate {

/// Seconds of the coordinator for a closure, and for its message to another host and that of the result.
inline double closure_seconds(const JobModel& job, const Constants& constants) {
  const double messages = job.one_host ? 0 : 2 * constants.message;
  return constants.closure + messages;
}

/// The arguments of the constructor must outlive the coordinator.
class CoordinatorActor {
 public:
  /// `send` delivers a closure to the worker with the given index. The coordinator has `closures` of them.
  CoordinatorActor(Simulation& simulation, Host& host, const JobModel& job, const Constants& constants,
                   RandomSource& random, std::uint64_t closures, std::function<void(int)> send)
      : host_(host),
        job_(job),
        constants_(constants),
        left_(closures),
        send_(std::move(send)),
        thread_(simulation, host.cores, constants, random) {}

  Host& host() noexcept { return host_; }
  const Thread& thread() const noexcept { return thread_; }

  /// Sends the first closures to all workers, as many as a worker holds.
  void start() {
    for (int i = 0; i < job_.in_flight; ++i) {
      for (int worker = 0; worker < job_.workers; ++worker) dispatch(worker);
    }
  }
  /// Receives a result of the worker, and sends it the next closure.
  void receive_result(int worker) { dispatch(worker); }
  /// Receives messages that take `seconds`, such as a heartbeat; then calls `done`.
  void receive(double seconds, Simulation::Action done) { thread_.run(seconds, std::move(done)); }

 private:
  void dispatch(int worker) {
    thread_.run(closure_seconds(job_, constants_), [this, worker] {
      if (left_ == 0) return;
      --left_;
      send_(worker);
    });
  }

  Host& host_;
  const JobModel& job_;
  const Constants& constants_;
  std::uint64_t left_;  // closures that were not sent
  std::function<void(int)> send_;
  Thread thread_;
};

}  // namespace capstan::simulate
