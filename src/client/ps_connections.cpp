// ps_connections.cpp -- dispatches messages to connections, and performs calls on all of them.
#include "client/ps_connections.hpp"

#include <algorithm>
#include <utility>

#include "capstan/serialize.hpp"
#include "transport/bytes.hpp"

namespace capstan::client {

PsConnections::PsConnections(cluster::Runtime& runtime) : runtime_(runtime), rpc_(runtime.data()) {
  for (int ps = 0; ps < runtime.count(Role::ps); ++ps) connections_.emplace_back(runtime, rpc_, ps);
  runtime.data().on_message(transport::kPsReturned,
                            [this](const transport::Message& message) { on_restart(message); });
  runtime.data().on_message(transport::kPushApplied,
                            [this](const transport::Message& message) { on_acknowledgment(message); });
}

void PsConnections::on_restart(const transport::Message& message) {
  const auto header = transport::read_header<protocol::PsReturned>(message);
  if (!header) return;
  auto process = from_bytes<cluster::Member>(message.payload);
  if (!runtime_.membership().knows(process.rank)) return;
  const cluster::Member& known = runtime_.member(process.rank);
  if (known.role != Role::ps) return;
  connections_[static_cast<std::size_t>(known.index)].note_restart(header->incarnation, std::move(process));
}

void PsConnections::on_acknowledgment(const transport::Message& message) {
  const auto applied = transport::read_header<protocol::PushApplied>(message);
  const cluster::Member& from = runtime_.member(message.from);
  if (!applied || from.role != Role::ps) return;
  connections_.at(static_cast<std::size_t>(from.index)).note_acknowledged(*applied);
}

PsConnection& PsConnections::live_connection(int ps) {
  PsConnection& connection = at(ps);
  if (connection.idle()) {
    (void)connection.reconnect_if_dead();  // nothing in flight could be lost
  } else {
    connection.require_alive();
  }
  return connection;
}

bool PsConnections::reconnect() {
  runtime_.data().progress();
  for (PsConnection& connection : connections_) {
    if (!connection.connected() || connection.alive()) continue;
    try {
      connection.require_alive();  // reconnects
    } catch (const Error&) {
      if (!connection.alive()) return false;  // otherwise it has reconnected, and only pushes were lost
    }
  }
  return true;
}

void PsConnections::retry(const std::function<void()>& read) {
  while (true) {
    const std::uint64_t before = restarts();
    try {
      return read();
    } catch (const Error& error) {
      if (error.code() != Code::unavailable) throw;
      (void)reconnect();
      if (restarts() == before || has_lost_pushes()) throw;  // `read` can be repeated, lost pushes cannot
    }
  }
}

bool PsConnections::has_lost_pushes() const noexcept {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const PsConnection& connection) { return connection.has_lost_pushes(); });
}

std::uint64_t PsConnections::restarts() const noexcept {
  std::uint64_t sum = 0;
  for (const PsConnection& connection : connections_) sum += connection.restarts();
  return sum;
}

std::uint64_t PsConnections::relocations() const noexcept {
  std::uint64_t sum = 0;
  for (const PsConnection& connection : connections_) sum += connection.relocations();
  return sum;
}

bool PsConnections::idle() {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](PsConnection& connection) { return !connection.connected() || connection.idle(); });
}

void PsConnections::publish() {
  for (PsConnection& connection : connections_) {
    if (connection.connected()) connection.publish();
  }
}

void PsConnections::flush() {
  for (PsConnection& connection : connections_) {
    if (connection.connected() || connection.has_lost_pushes()) connection.flush();
  }
}

}  // namespace capstan::client
