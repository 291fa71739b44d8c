// coordinator_watch.cpp -- waits for the next coordinator, connects to it or gives up.
#include "cluster/membership/coordinator_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/runtime.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::cluster {

void CoordinatorWatch::on_connection_lost(const transport::Peer& peer) {
  if (deadline_) return;
  name_ = peer.name();
  deadline_ = Clock::now();
  if (!runtime_.coordinator_may_return() || isolated_ || !address_known_) return;
  *deadline_ += runtime_.coordinator_wait();
  log::warn("{} is dead; waiting {} ms for it to recover", name_, runtime_.coordinator_wait().count());
}

void CoordinatorWatch::on_isolated() {
  isolated_ = true;
  if (deadline_) deadline_ = Clock::now();
}

void CoordinatorWatch::on_greeting(const transport::Message& message) {
  if (message.from == runtime_.member(Role::coordinator, 0).rank) address_known_ = true;
}

void CoordinatorWatch::on_announcement(const transport::Message& message) {
  try {
    auto back = from_bytes<CoordinatorReturned>(message.payload);
    if (back.incarnation <= incarnation_) return;
    incarnation_ = back.incarnation;  // late messages of the previous process have a lower one
    announcement_ = std::move(back);
  } catch (const Error& error) {
    log::error("dropped a malformed kCoordinatorReturned: {}", error.what());
  }
}

bool CoordinatorWatch::on_admission(const transport::Message& message) {
  const auto incarnation = transport::read_header<std::int32_t>(message);
  if (!incarnation) return false;
  incarnation_ =
      std::max(incarnation_, *incarnation);  // the greeting of a previous coordinator may arrive late
  return true;
}

CoordinatorReturned CoordinatorWatch::reconnect() {
  CoordinatorReturned back = *std::exchange(announcement_, std::nullopt);
  deadline_.reset();
  isolated_ = false;
  address_known_ = true;
  runtime_.coordinator_returned(back.coordinator);
  return back;
}

void CoordinatorWatch::acknowledge() {
  runtime_.control_peer(runtime_.member(Role::coordinator, 0))
      .send(transport::kCoordinatorKnown, transport::as_bytes(incarnation_));
}

const std::string& CoordinatorWatch::stop_reason() {
  if (!stop_reason_.empty() || !deadline_ || Clock::now() < *deadline_) return stop_reason_;
  stop_reason_ = name_ + " is dead";
  if (isolated_) {
    stop_reason_ += ", and no other rank can be reached";
  } else if (!address_known_) {
    stop_reason_ +=
        ", and had not recorded the address of this restarted rank: no other coordinator can find it";
  } else if (runtime_.coordinator_may_return()) {
    stop_reason_ += fmt::format(", and has not recovered within {} ms (--coordinator-wait)",
                                runtime_.coordinator_wait().count());
  }
  return stop_reason_;
}

}  // namespace capstan::cluster
