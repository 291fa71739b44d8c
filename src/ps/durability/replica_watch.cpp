// replica_watch.cpp -- timeouts of a replica, and requests to drop it.
#include "ps/durability/replica_watch.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/log.hpp"

namespace capstan::ps {
namespace {

using cluster::FailureDetector;

/// Interval at which the request to drop the replica is repeated until the coordinator answers.
constexpr std::chrono::milliseconds kDropRequestInterval{200};
/// Multiplies --wait-timeout while the replica is busy with a call: filling a large table may take minutes.
constexpr int kBusyTimeoutFactor = 10;
/// Identifies the replica in the detector, which watches nothing else.
constexpr int kReplica = 0;

/// Returns a detector that does not suspect the replica before the complete timeout has passed.
FailureDetector detector_of(FailureDetector::Time timeout) {
  const auto period = FailureDetector::period_of(timeout);
  return {timeout + period, period};
}

}  // namespace

ReplicaWatch::ReplicaWatch(ReplicaStream& stream, Timeouts timeouts, std::function<void()> request_drop)
    : stream_(stream),
      timeouts_(timeouts),
      request_drop_(std::move(request_drop)),
      detector_(detector_of(timeout())) {}

ReplicaWatch::Time ReplicaWatch::timeout() const {
  if (stream_.busy()) return kBusyTimeoutFactor * timeouts_.wait;
  return stream_.has_responded() ? timeouts_.silence : timeouts_.wait;
}

void ReplicaWatch::on_progress(const protocol::ReplicaProgress& progress, Clock::time_point now) {
  const Time before = timeout();
  stream_.on_progress(progress);
  if (timeout() != before) detector_ = detector_of(timeout());
  detector_.heard(kReplica, now);
}

void ReplicaWatch::abandon(const std::string& why, Clock::time_point now) {
  if (abandoned_) return;
  log::warn(
      "abandoning the replica {} of this ps: {}; asking the coordinator for consent to continue without it",
      stream_.peer().name(), why);
  request(now);
}

void ReplicaWatch::request(Clock::time_point now) {
  requested_ = now;
  abandoned_ = abandoned_.value_or(now);
  request_drop_();
}

void ReplicaWatch::on_coordinator_returned(Clock::time_point now) {
  if (!abandoned_ || stream_.dropped()) return;
  abandoned_.reset();  // the timeout of the new coordinator starts now
  request(now);
}

void ReplicaWatch::poll(Clock::time_point now, bool coordinator_connected) {
  if (!abandoned_) {
    if (!stream_.has_pending()) {
      detector_.forget(kReplica);
    } else if (!detector_.watches(kReplica)) {
      detector_.heard(kReplica, now);
    }
    if (!detector_.check(now).empty()) abandon(fmt::format("no answer within {} ms", timeout().count()), now);
    return;
  }
  if (stream_.dropped() || !coordinator_connected) return;
  if (now - requested_ > kDropRequestInterval) request(now);
  if (now - *abandoned_ > timeouts_.wait) consent_overdue_ = true;
}

}  // namespace capstan::ps
