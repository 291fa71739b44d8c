// ps_replica.cpp -- replication in PsServer, on the ps and on its replica.
#include <fmt/format.h>

#include <utility>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "ps/server/ps_server.hpp"
#include "transport/bytes.hpp"

namespace capstan::ps {
namespace {

/// Longest wait for messages between two heartbeats of a replica.
constexpr std::chrono::milliseconds kReplicaHeartbeatPeriod{200};

}  // namespace

void PsServer::serve_replicated(std::uint16_t type, Request handler) {
  replicated_requests_[type] = std::move(handler);
  rpc_.serve(type,
             [this, type](int from, transport::Bytes request) { return replicate(type, from, request); });
}

std::vector<std::byte> PsServer::replicate(std::uint16_t type, int from, transport::Bytes request) {
  const Request& handler = replicated_requests_.at(type);
  if (!replica_ || replica_->dropped()) return handler(from, request);
  const std::uint64_t refused = replica_->refused();
  replica_->call(type, from, request);
  await_replica();
  const bool replica_refused = !replica_->dropped() && replica_->refused() != refused;
  try {
    std::vector<std::byte> reply = handler(from, request);
    if (replica_refused) {
      abandon_replica("it rejected a request that succeeded on the ps");
      await_replica();
    }
    return reply;
  } catch (const Error&) {
    if (!replica_refused && !replica_->dropped()) {
      abandon_replica("it accepted a request that failed on the ps");
      await_replica();
    }
    throw;
  }
}

void PsServer::serve_replica() {
  // After a failover, records from the replaced ps are ignored and not acknowledged.
  fabric_.on_message(transport::kReplicate, [this](const transport::Message& message) {
    if (following_) replica_inbox_.receive(message);
  });
  fabric_.on_message(transport::kReplicated, [this](const transport::Message& message) {
    const auto progress = transport::read_header<protocol::ReplicaProgress>(message);
    if (progress && replica_watch_) replica_watch_->on_progress(*progress, ReplicaWatch::Clock::now());
  });
  // The coordinator has ruled out a failover to the replica.
  fabric_.on_message(transport::kReplicaDropped, [this](const transport::Message&) {
    if (replica_) replica_->drop();
  });
}

void PsServer::when_safe(std::function<void()> then) {
  if (!replica_) return then();
  replica_->when_safe(std::move(then));
}

bool PsServer::poll_replica() {
  replica_watch_->poll(ReplicaWatch::Clock::now(), !coordinator_.until());
  if (replica_watch_->consent_overdue()) {
    silence_reason_ =
        fmt::format("cannot continue without the replica: no consent from {} within {} ms",
                    runtime_->member(Role::coordinator, 0).name(), runtime_->wait_timeout().count());
  }
  return replica_->advance();
}

void PsServer::await_replica() {
  const auto settled = [this] { return replica_watch_->settled() || must_stop(); };
  while (!settled()) {
    transport::progress_until(fabric_, transport::deadline_in(std::chrono::milliseconds(100)),
                              [&] { return settled() || coordinator_.news(); });
    if (coordinator_.news()) reconnect_coordinator();  // only the coordinator can confirm that it is dropped
    poll_replica();
    heartbeat_.beat();
  }
  if (must_stop())
    throw RequestAborted{};  // the replica may have replaced this ps without applying the record
}

std::optional<protocol::FailoverRequest> PsServer::follow() {
  std::optional<protocol::FailoverRequest> order;
  following_ = true;
  fabric_.on_message(transport::kFailover, [&order](const transport::Message& message) {
    order = from_bytes<protocol::FailoverRequest>(message.payload);
  });
  // Each end detects the death of the other only after traffic in both directions.
  runtime_->control_peer(runtime_->member(Role::coordinator, 0)).send(transport::kHello, {});
  while (!order && !job_ended_ && stop_reason().empty()) {
    cluster::Heartbeat::beat(2 * runtime_->settings().duration("heartbeat-timeout"));
    if (!poll_fabric()) fabric_.wait(kReplicaHeartbeatPeriod);
  }
  cluster::Heartbeat::rest();
  fabric_.on_message(transport::kFailover, [](const transport::Message&) {});
  if (!stop_reason().empty()) throw Error(Code::unavailable, stop_reason() + "; this replica of a ps exits");
  return order;
}

void PsServer::send_progress(const protocol::ReplicaProgress& progress) {
  runtime_->control_peer(runtime_->member(Role::ps, runtime_->self().index))
      .send(transport::kReplicated, transport::as_bytes(progress));
  if (progress.busy == 0) return;
  // The agent must not mistake a long call for a hang either.
  cluster::Heartbeat::rest();
  fabric_.progress();
}

void PsServer::replay(std::uint16_t type, int from, transport::Bytes request) {
  if (type == transport::kWorkerDead) {
    replica_inbox_.close(from);
    close_rank(from);
  } else if (type == transport::kMemberJoined) {
    add_member(request);
  } else if (const auto found = replicated_requests_.find(type); found != replicated_requests_.end()) {
    found->second(from, request);
  } else {
    throw Error(Code::invalid_argument,
                fmt::format("cannot replay a replication record: unexpected message type {}", type));
  }
}

}  // namespace capstan::ps
