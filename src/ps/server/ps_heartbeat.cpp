// ps_heartbeat.cpp -- sends and receives kHeartbeat.
#include "ps/server/ps_heartbeat.hpp"

#include <algorithm>

#include "cluster/supervisor/heartbeat.hpp"
#include "protocol/ps_messages.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {
namespace {

constexpr std::chrono::milliseconds kLongestSleep{500};

std::chrono::milliseconds period_of(const cluster::Runtime& runtime) {
  if (runtime.in_process()) return std::chrono::milliseconds(0);
  return cluster::FailureDetector::period_of(runtime.settings().duration("heartbeat-timeout"));
}

}  // namespace

PsHeartbeat::PsHeartbeat(cluster::Runtime& runtime, const std::uint32_t& incarnation)
    : runtime_(runtime),
      incarnation_(incarnation),
      period_(period_of(runtime)),
      coordinator_rank_(runtime.member(Role::coordinator, 0).rank),
      coordinator_detector_(cluster::FailureDetector::for_coordinator(period_, runtime.wait_timeout())) {
  // The coordinator declares a silent ps dead after the longer of --heartbeat-timeout and --ps-wait; the
  // agent waits one --heartbeat-timeout longer.
  const auto& settings = runtime.settings();
  const auto heartbeat = settings.duration("heartbeat-timeout");
  if (period_.count() != 0) agent_timeout_ = heartbeat + std::max(heartbeat, settings.duration("ps-wait"));
}

void PsHeartbeat::receive(const transport::Message& message) {
  if (period_.count() == 0) return;
  if (message.header.empty()) {
    forget_coordinator();
  } else if (transport::read_header<protocol::PsHeartbeatHeader>(message)) {
    // The coordinator monitors this ps from the first heartbeat that the ps sends, so one is sent at once.
    if (!coordinator_detector_.watches(coordinator_rank_)) next_ = {};
    coordinator_detector_.heard(coordinator_rank_, Clock::now());
  }
}

void PsHeartbeat::send(bool busy) {
  const protocol::PsHeartbeatHeader beat{busy ? 1 : 0, incarnation_};
  runtime_.control_peer(runtime_.member(Role::coordinator, 0))
      .send(transport::kHeartbeat, transport::as_bytes(beat));
}

void PsHeartbeat::beat() {
  if (period_.count() == 0) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + period_;
  cluster::Heartbeat::beat(agent_timeout_);
  if (coordinator_detector_.watches(coordinator_rank_)) send(false);
}

void PsHeartbeat::announce_work() {
  if (period_.count() == 0) return;
  cluster::Heartbeat::pause();
  next_ = {};  // beat as soon as the work is done
  if (!coordinator_detector_.watches(coordinator_rank_)) return;
  send(true);
  runtime_.control().progress();
}

bool PsHeartbeat::coordinator_is_silent() {
  (void)coordinator_detector_.check(Clock::now());
  return coordinator_detector_.suspects(coordinator_rank_);
}

void PsHeartbeat::end() {
  if (period_.count() != 0) cluster::Heartbeat::beat(runtime_.wait_timeout());
}

std::chrono::milliseconds PsHeartbeat::period() const noexcept {
  return period_.count() != 0 ? std::min(period_, kLongestSleep) : kLongestSleep;
}

}  // namespace capstan::ps
