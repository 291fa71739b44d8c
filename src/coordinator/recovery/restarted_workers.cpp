// restarted_workers.cpp -- replaces a worker once every ps knows the new process.
#include "coordinator/recovery/restarted_workers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "io/events/trace_file.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

constexpr const char* kRestarted = "its agent has restarted it";

}  // namespace

void RestartedWorkers::request_admission(const transport::Message& message) {
  try {
    auto member = from_bytes<cluster::Member>(message.payload);
    const bool from_ps = member.rank != message.from;
    requests_.push_back({std::move(member), from_ps});
  } catch (const Error& error) {
    log::error("dropped a malformed kJoin from rank {}: {}", message.from, error.what());
  }
}

bool RestartedWorkers::acceptable(const cluster::Member& member) const {
  const cluster::Table& table = runtime_.table();
  const bool is_new = static_cast<std::size_t>(member.rank) >= table.members.size() &&
                      member.rank < table.capacity() && member.role == Role::worker &&
                      member.index == table.index_of(member.rank);
  if (!is_new) return false;
  const auto later = [&](int rank) { return rank >= member.rank && rank < table.capacity(); };
  const transport::Peer* before = dispatcher_.worker(member.index);
  if (table.is_late(member.rank)) return member.index == dispatcher_.workers();  // they join in order
  return before != nullptr && !later(before->rank()) &&
         std::none_of(pending_.begin(), pending_.end(), [&](const PendingAdmission& other) {
           return other.index == member.index && later(other.peer->rank());
         });
}

void RestartedWorkers::begin(const AdmissionRequest& request) {
  const cluster::Member& member = request.member;
  if (runtime_.membership().knows(member.rank)) return;  // a repeated request
  if (!acceptable(member)) {
    log::error("{} cannot be admitted: a later process has its index, or it is not a worker", member.name());
    return;
  }
  const auto earlier = std::find_if(pending_.begin(), pending_.end(), [&](const PendingAdmission& worker) {
    return worker.index == member.index;
  });
  if (earlier != pending_.end()) {
    transport::Peer& peer = *earlier->peer;
    peer.disconnect();
    lose_(peer, cluster::MemberState::dead, kRestarted);
  }
  transport::Peer* before = dispatcher_.worker(member.index);
  if (before != nullptr) {
    if (!before->failed()) before->disconnect();
    lose_(*before, cluster::MemberState::dead, kRestarted);
  }
  runtime_.membership().add(member, cluster::MemberState::joining);
  if (before == nullptr) dispatcher_.add(runtime_.control_peer(member));
  PendingAdmission worker{
      &runtime_.control_peer(member), member.index, {}, transport::deadline_in(runtime_.wait_timeout())};
  if (request.from_ps) {
    worker.peer->send(
        transport::kCoordinatorReturned, {},
        to_bytes(cluster::CoordinatorReturned{runtime_.incarnation(), runtime_.self(), {}, {}}));
  }
  // The transport reports a death only on a connection that has been used in both directions.
  const std::int32_t incarnation = runtime_.incarnation();
  worker.peer->send(transport::kHello, transport::as_bytes(incarnation));
  const auto bytes = to_bytes(member);
  for (int ps = 0; ps < runtime_.count(Role::ps); ++ps) {
    transport::Peer& peer = runtime_.control_peer(runtime_.member(Role::ps, ps));
    peer.send(transport::kMemberJoined, {}, bytes);
    worker.open.insert(peer.rank());
  }
  pending_.push_back(std::move(worker));
}

void RestartedWorkers::note_known(int rank, int ps) {
  for (PendingAdmission& worker : pending_) {
    if (worker.peer->rank() == rank) worker.open.erase(ps);
  }
}

void RestartedWorkers::resend_requests(transport::Peer& ps) {
  for (const PendingAdmission& worker : pending_) {
    if (worker.open.contains(ps.rank()))
      ps.send(transport::kMemberJoined, {}, to_bytes(runtime_.member(worker.peer->rank())));
  }
}

void RestartedWorkers::forget(const transport::Peer& peer) {
  std::erase_if(pending_, [&](const PendingAdmission& worker) { return worker.peer == &peer; });
}

void RestartedWorkers::give_up(const PendingAdmission& worker) {
  std::vector<std::string> names;
  for (const int ps : worker.open) names.push_back(runtime_.name_of(ps));
  log::warn("{} cannot be admitted: waited {} ms for {} to acknowledge it", worker.peer->name(),
            runtime_.wait_timeout().count(), fmt::join(names, " and "));
  worker.peer->send(transport::kShutdown, {});
  lose_(*worker.peer, cluster::MemberState::fenced,
        fmt::format("{} did not acknowledge it in time", fmt::join(names, " and ")));
}

/// Returns the deadline for the replies of the ps. It is extended when a ps that has not replied returns.
/// There is none while such a ps is dead, which has its own deadline.
std::chrono::steady_clock::time_point RestartedWorkers::deadline_of(const PendingAdmission& worker) const {
  auto deadline = worker.deadline;
  for (const int ps : worker.open) {
    const cluster::Membership::Status status = runtime_.membership().status(ps);
    if (status.state != cluster::MemberState::alive) return std::chrono::steady_clock::time_point::max();
    deadline = std::max(deadline, status.since + runtime_.wait_timeout());
  }
  return deadline;
}

bool RestartedWorkers::advance() {
  if (requests_.empty() && pending_.empty()) return false;
  bool any = !requests_.empty();
  for (const AdmissionRequest& request : std::exchange(requests_, {})) begin(request);
  const auto now = std::chrono::steady_clock::now();
  std::vector<PendingAdmission> overdue;
  std::erase_if(pending_, [&](const PendingAdmission& worker) {
    if (worker.open.empty()) {
      dispatcher_.replace(worker.index, *worker.peer);
      runtime_.membership().set(worker.peer->rank(), cluster::MemberState::alive);
      if (io::TraceFile* trace = runtime_.trace(); trace != nullptr)
        trace->instant("loss", "worker joined", {{"rank", worker.peer->rank()}});
      const bool late = runtime_.table().is_late(worker.peer->rank());
      log::info("{} {}; live workers: {}", worker.peer->name(),
                late ? "has joined" : "replaces the previous process",
                runtime_.membership().alive(Role::worker));
      return any = true;
    }
    if (now < deadline_of(worker)) return false;
    overdue.push_back(worker);
    return true;
  });
  for (const PendingAdmission& worker : overdue) give_up(worker);
  return any;
}

void RestartedWorkers::send_to_all(std::uint16_t type) {
  for (const PendingAdmission& worker : pending_) worker.peer->send(type, {});
}

}  // namespace capstan::coordinator
