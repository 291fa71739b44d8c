// ps_pulse.cpp -- kHeartbeat, both ways.
#include "store/ps_pulse.hpp"

#include <algorithm>

#include "cluster/message_types.hpp"
#include "shard/protocol.hpp"
#include "transport/bytes.hpp"

namespace capstan::store {
namespace {

constexpr std::chrono::milliseconds kNobodyListens{500};

/// Five in the time that a rank may be silent.
std::chrono::milliseconds period_of(const cluster::Runtime& runtime) {
  const auto timeout = runtime.settings().duration("heartbeat-timeout");
  if (runtime.in_process() || timeout.count() == 0) return std::chrono::milliseconds(0);
  return std::max<std::chrono::milliseconds>(timeout / 5, std::chrono::milliseconds(1));
}

}  // namespace

PsPulse::PsPulse(cluster::Runtime& runtime)
    : runtime_(runtime), period_(period_of(runtime)), silence_(period_, runtime.patience()) {}

void PsPulse::take(const transport::Message& message) {
  if (period_.count() == 0) return;
  if (message.header.empty()) {
    silence_.excuse();
  } else {
    silence_.heard(Clock::now());
  }
}

void PsPulse::send(bool busy) {
  const shard::PsBeat beat{busy ? 1 : 0};
  runtime_.control_peer(runtime_.member(Role::coordinator, 0))
      .send(cluster::kHeartbeat, transport::as_bytes(beat));
  next_ = Clock::now() + period_;
}

void PsPulse::beat() {
  if (silence_.expected() && Clock::now() >= next_) send(false);
}

void PsPulse::be_busy() {
  if (!silence_.expected()) return;
  send(true);
  runtime_.control().progress();
  next_ = {};  // as soon as it is done
}

std::chrono::milliseconds PsPulse::period() const noexcept {
  return silence_.expected() ? std::min(period_, kNobodyListens) : kNobodyListens;
}

}  // namespace capstan::store
