// ps_replica.cpp -- what a ps does for its replica, and what the replica does.
#include <fmt/format.h>

#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "ps/server/ps_server.hpp"
#include "transport/bytes.hpp"

namespace capstan::ps {
namespace {

constexpr std::chrono::milliseconds kBeat{200};
/// How often the coordinator is asked to drop the replica, until it answers.
constexpr std::chrono::milliseconds kAsksAgain{200};
/// How many times --wait-timeout a replica may be at one call.
constexpr int kTimeoutsOfABusyReplica = 10;

}  // namespace

void PsServer::serve_change(std::uint16_t type, Request handler) {
  changes_[type] = std::move(handler);
  rpc_.serve(type, [this, type](int from, transport::Bytes request) { return change(type, from, request); });
}

std::vector<std::byte> PsServer::change(std::uint16_t type, int from, transport::Bytes request) {
  const Request& here = changes_.at(type);
  if (!replica_ || replica_->ended()) return here(from, request);
  const std::uint64_t refused = replica_->refused();
  replica_->call(type, from, request);
  await_replica();
  const bool refused_there = !replica_->ended() && replica_->refused() != refused;
  try {
    std::vector<std::byte> reply = here(from, request);
    if (refused_there) {
      give_up_replica("could not do what it was told");
      await_replica();
    }
    return reply;
  } catch (const Error&) {
    if (!refused_there && !replica_->ended()) {
      give_up_replica("did what could not be done here");
      await_replica();
    }
    throw;
  }
}

void PsServer::serve_replica() {
  // From one whose place this rank has taken nothing counts any more, and it will not hear that anything did.
  fabric_.on_message(transport::kReplicate, [this](const transport::Message& message) {
    if (following_) replicated_.receive(message);
  });
  fabric_.on_message(transport::kReplicated, [this](const transport::Message& message) {
    const auto progress = transport::read_header<protocol::ReplicaProgress>(message);
    if (!progress || !replica_) return;
    replica_->take(*progress);
    heard_ = std::chrono::steady_clock::now();
  });
  // The coordinator will not have the replica take over any more.
  fabric_.on_message(transport::kReplicaDropped, [this](const transport::Message&) {
    if (replica_) replica_->end();
  });
}

void PsServer::when_safe(std::function<void()> then) {
  if (!replica_) return then();
  replica_->when_safe(std::move(then));
}

void PsServer::give_up_replica(const std::string& why) {
  if (given_up_) return;
  log::warn("the replica of this ps, {}, {}: it goes on without one", replica_->peer().name(), why);
  ask_to_drop_replica();
}

void PsServer::ask_to_drop_replica() {
  asked_ = std::chrono::steady_clock::now();
  given_up_ = given_up_.value_or(asked_);
  runtime_->control_peer(runtime_->member(Role::coordinator, 0)).send(transport::kReplicaLost, {});
}

bool PsServer::look_at_replica() {
  const auto now = std::chrono::steady_clock::now();
  // A table may take minutes to fill, and a replica that is not there yet is about to start.
  const auto timeout = replica_->busy()    ? kTimeoutsOfABusyReplica * runtime_->wait_timeout()
                       : replica_->begun() ? runtime_->settings().duration("heartbeat-timeout")
                                           : runtime_->wait_timeout();
  // Who has not looked for long was busy or stopped itself: it cannot tell how long the replica is silent.
  const bool first_look = now - std::exchange(looked_, now) > timeout / 2;
  if (given_up_) {
    // A coordinator that is about to begin drops the question.
    if (!replica_->ended() && !coordinator_.until() && now - asked_ > kAsksAgain) ask_to_drop_replica();
    // Without its word the replica may have taken this ps's place.
    if (!replica_->ended() && !coordinator_.until() && now - *given_up_ > runtime_->wait_timeout()) {
      reason_to_end_ =
          fmt::format("waited {} ms for {} to say that this ps may go on without its replica",
                      runtime_->wait_timeout().count(), runtime_->member(Role::coordinator, 0).name());
    }
  } else if (!replica_->waits() || first_look) {
    heard_ = now;
  } else if (timeout.count() > 0 && now - heard_ > timeout) {
    give_up_replica("does not answer");
  }
  return replica_->advance();
}

void PsServer::await_replica() {
  // One that is given up may have answered everything, and not be what this ps is.
  const auto settled = [this] {
    return replica_->ended() || (!given_up_ && !replica_->waits()) || cut_off();
  };
  while (!settled()) {
    transport::progress_until(fabric_, transport::deadline_in(std::chrono::milliseconds(100)),
                              [&] { return settled() || coordinator_.news(); });
    if (coordinator_.news()) greet_coordinator();  // it may have to say that the replica is dropped
    look_at_replica();
    heartbeat_.beat();
  }
  if (cut_off()) throw CutOff{};  // the replica may have this ps's place, and not have done it
}

std::optional<protocol::FailoverRequest> PsServer::follow() {
  std::optional<protocol::FailoverRequest> order;
  following_ = true;
  fabric_.on_message(transport::kFailover, [&order](const transport::Message& message) {
    order = from_bytes<protocol::FailoverRequest>(message.payload);
  });
  // Traffic both ways is what makes either end's death visible to the other.
  runtime_->control_peer(runtime_->member(Role::coordinator, 0)).send(transport::kHello, {});
  while (!order && !over_ && lost().empty()) {
    cluster::Heartbeat::beat(2 * runtime_->settings().duration("heartbeat-timeout"));
    if (!look_at_the_wire()) fabric_.wait(kBeat);
  }
  cluster::Heartbeat::rest();
  fabric_.on_message(transport::kFailover, [](const transport::Message&) {});
  if (!lost().empty()) throw Error(Code::unavailable, lost() + "; this replica of a ps ends");
  return order;
}

void PsServer::say_progress(const protocol::ReplicaProgress& progress) {
  runtime_->control_peer(runtime_->member(Role::ps, runtime_->self().index))
      .send(transport::kReplicated, transport::as_bytes(progress));
  if (progress.busy == 0) return;
  // Its agent, too, is to know that it does not stand still.
  cluster::Heartbeat::rest();
  fabric_.progress();
}

void PsServer::repeat(std::uint16_t type, int from, transport::Bytes request) {
  if (type == transport::kWorkerDead) {
    replicated_.close(from);
    forget(from);
  } else if (type == transport::kMemberJoined) {
    take_member(request);
  } else if (const auto found = changes_.find(type); found != changes_.end()) {
    found->second(from, request);
  } else {
    log::error("the ps that this one follows has done something unknown, {}", type);
  }
}

}  // namespace capstan::ps
