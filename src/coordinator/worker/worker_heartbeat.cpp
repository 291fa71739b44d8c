// worker_heartbeat.cpp -- exchanges kHeartbeat with the coordinator.
#include "coordinator/worker/worker_heartbeat.hpp"

#include "cluster/supervisor/heartbeat.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

std::chrono::milliseconds heartbeat_period(const cluster::Runtime& runtime) {
  if (runtime.in_process()) return std::chrono::milliseconds(0);
  return cluster::FailureDetector::period_of(runtime.settings().duration("heartbeat-timeout"));
}

}  // namespace

WorkerHeartbeat::WorkerHeartbeat(cluster::Runtime& runtime)
    : period_(heartbeat_period(runtime)),
      deadline_of_next_(2 * runtime.settings().duration("heartbeat-timeout")),
      detector_(cluster::FailureDetector::for_coordinator(period_, runtime.wait_timeout())) {}

WorkerHeartbeat::Clock::time_point WorkerHeartbeat::send(transport::Peer& coordinator,
                                                         Clock::time_point now) {
  if (period_.count() == 0) return Clock::time_point::max();
  if (now >= next_) {
    coordinator.send(transport::kHeartbeat, {});
    cluster::Heartbeat::beat(deadline_of_next_);
    next_ = now + period_;
  }
  return next_;
}

bool WorkerHeartbeat::suspects(int coordinator, Clock::time_point now) {
  (void)detector_.check(now);
  return detector_.suspects(coordinator);
}

}  // namespace capstan::coordinator
