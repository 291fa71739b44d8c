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

void CoordinatorWatch::lose(const transport::Peer& peer) {
  if (until_) return;
  lost_ = peer.name();
  until_ = Clock::now();
  if (!runtime_.coordinator_may_return() || alone_ || !known_) return;
  *until_ += runtime_.coordinator_wait();
  log::warn("{} is gone; waiting {} ms for it to come back", lost_, runtime_.coordinator_wait().count());
}

void CoordinatorWatch::reach_none() {
  alone_ = true;
  if (until_) until_ = Clock::now();
}

void CoordinatorWatch::greet(const transport::Message& message) {
  if (message.from == runtime_.member(Role::coordinator, 0).rank) known_ = true;
}

void CoordinatorWatch::hear(const transport::Message& message) {
  try {
    auto back = from_bytes<CoordinatorBack>(message.payload);
    if (back.incarnation <= incarnation_) return;
    incarnation_ = back.incarnation;  // late messages of the previous process have a lower one
    back_ = std::move(back);
  } catch (const Error& error) {
    log::error("dropped a malformed kCoordinatorReturned: {}", error.what());
  }
}

bool CoordinatorWatch::meet(const transport::Message& message) {
  const auto incarnation = transport::read_header<std::int32_t>(message);
  if (!incarnation) return false;
  incarnation_ =
      std::max(incarnation_, *incarnation);  // the greeting of a previous coordinator may arrive late
  return true;
}

CoordinatorBack CoordinatorWatch::take_up() {
  CoordinatorBack back = *std::exchange(back_, std::nullopt);
  until_.reset();
  alone_ = false;
  known_ = true;
  runtime_.coordinator_returned(back.coordinator);
  return back;
}

void CoordinatorWatch::answer() {
  runtime_.control_peer(runtime_.member(Role::coordinator, 0))
      .send(transport::kCoordinatorKnown, transport::as_bytes(incarnation_));
}

const std::string& CoordinatorWatch::verdict() {
  if (!verdict_.empty() || !until_ || Clock::now() < *until_) return verdict_;
  verdict_ = lost_ + " is gone";
  if (alone_) {
    verdict_ += ", and no other rank can be reached";
  } else if (!known_) {
    verdict_ += ", and had not recorded the address of this restarted rank: no other coordinator can find it";
  } else if (runtime_.coordinator_may_return()) {
    verdict_ += fmt::format(", and has not come back within {} ms (--coordinator-wait)",
                            runtime_.coordinator_wait().count());
  }
  return verdict_;
}

}  // namespace capstan::cluster
