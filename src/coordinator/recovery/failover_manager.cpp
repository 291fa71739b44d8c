// failover_manager.cpp -- tries spares in turn, until one has the shards.
#include "coordinator/recovery/failover_manager.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

/// Time to read the shards at 0.1 GB/s, slower than any file system in use.
std::chrono::milliseconds reading(const protocol::FailoverRequest& failover) {
  std::uint64_t bytes = 0;
  for (const protocol::CreateShard& shard : failover.shards) {
    const std::uint64_t elements = shard.rows * protocol::width_of(shard.shape);
    bytes += elements * (size_of(shard.dtype) + protocol::slots_of(shard.optimizer.kind).size() *
                                                    size_of(protocol::slot_dtype(shard.dtype)));
  }
  return std::chrono::milliseconds(bytes / 100'000);
}

}  // namespace

FailoverManager::FailoverManager(cluster::Runtime& runtime, const strategy::PsContents& contents)
    : runtime_(runtime), contents_(contents) {
  for (const cluster::SpareRecord& found : runtime_.coordinator_memory().read().spares) {
    spares_.push_back({found});
    // The strategy has received a reply of every ps, so this failover has succeeded.
    if (found.state == State::failing_over) spares_.back().state = State::active;
    update_membership(spares_.back());
  }
  if (!spares_.empty()) return;
  for (const cluster::Member& member : runtime_.members()) {
    if (member.role == Role::spare) spares_.push_back({{.rank = member.rank}});
  }
}

void FailoverManager::set(Spare& spare, State state) {
  {
    const std::lock_guard lock(mutex_);
    spare.state = state;
  }
  record_states();
  update_membership(spare);
}

void FailoverManager::update_membership(const Spare& spare) {
  if (spare.state == State::dead)
    runtime_.membership().set(spare.rank, cluster::MemberState::dead, "it cannot take the place of a ps");
  if (spare.state == State::active) runtime_.membership().set(spare.rank, cluster::MemberState::alive);
}

void FailoverManager::record_states() {
  runtime_.coordinator_memory().change(
      [this](cluster::CoordinatorRecord& record) { record.spares.assign(spares_.begin(), spares_.end()); });
}

FailoverManager::Spare* FailoverManager::find(State state, int ps) {
  const auto found = std::find_if(spares_.begin(), spares_.end(),
                                  [&](const Spare& s) { return s.state == state && s.ps == ps; });
  return found == spares_.end() ? nullptr : &*found;
}

/// Returns a standby spare: the replica of the ps or, without replicas, any, preferably on another host.
/// Returns null if there is none.
FailoverManager::Spare* FailoverManager::choose(const cluster::Member& ps) {
  if (runtime_.ps_have_replicas()) {
    const int replica = runtime_.member(Role::spare, ps.index).rank;
    const auto found =
        std::find_if(spares_.begin(), spares_.end(), [&](const Spare& s) { return s.rank == replica; });
    return found->state == State::standby ? &*found : nullptr;
  }
  Spare* best = nullptr;
  for (Spare& spare : spares_) {
    if (spare.state != State::standby) continue;
    if (best == nullptr) best = &spare;
    if (runtime_.member(spare.rank).host != ps.host) return &spare;
  }
  return best;
}

bool FailoverManager::advance(const cluster::Member& ps, const std::vector<std::int32_t>& dead,
                              Clock::time_point now) {
  if (Spare* spare = find(State::failing_over, ps.rank)) {
    if (now < spare->deadline) return true;
    failure_reasons_[ps.rank] =
        fmt::format("{} has not taken its place in time", runtime_.name_of(spare->rank));
    log::warn("{}: {}", ps.name(), failure_reasons_[ps.rank]);
    set(*spare, State::dead);
  }
  if (Spare* spare = choose(ps)) return order_failover(*spare, ps, dead, now);
  if (failure_reasons_[ps.rank].empty())
    failure_reasons_[ps.rank] =
        runtime_.ps_have_replicas() ? "it no longer has a replica" : "no spare is left (--spares)";
  return false;
}

protocol::FailoverRequest FailoverManager::request_for(const cluster::Member& ps) const {
  if (!runtime_.ps_have_replicas()) return contents_.failover_of(ps.index);
  contents_.require_no_group();
  protocol::FailoverRequest failover;
  failover.index = ps.index;
  failover.source = protocol::FailoverRequest::Source::replica;
  return failover;
}

bool FailoverManager::order_failover(Spare& spare, const cluster::Member& ps,
                                     const std::vector<std::int32_t>& dead, Clock::time_point now) {
  protocol::FailoverRequest failover;
  try {
    failover = request_for(ps);
  } catch (const Error& error) {
    failure_reasons_[ps.rank] = error.what();
    return false;
  }
  failover.rank = ps.rank;
  failover.incarnation = incarnation_of(ps.rank) + 1;
  failover.dead = dead;
  const int capacity = runtime_.table().capacity();
  for (int rank = static_cast<int>(runtime_.members().size()); rank < capacity; ++rank) {
    if (runtime_.membership().knows(rank)) failover.members.push_back(runtime_.member(rank));
  }
  {
    const std::lock_guard lock(mutex_);
    spare = {{spare.rank, State::failing_over, ps.rank, ps.index, failover.incarnation},
             now + runtime_.wait_timeout() + reading(failover)};
  }
  record_states();
  runtime_.membership().set(ps.rank, cluster::MemberState::fenced,
                            fmt::format("{} takes its place", runtime_.name_of(spare.rank)));
  const auto checkpoint = contents_.checkpoint();
  log::warn("{} is lost; {} takes its shards over {}", ps.name(), runtime_.name_of(spare.rank),
            failover.source == protocol::FailoverRequest::Source::replica
                ? "with all that it had acknowledged"
                : fmt::format("from checkpoint {} (step {})", failover.directory,
                              checkpoint ? checkpoint->step : 0));
  runtime_.control_peer(ps).send(transport::kFenced, {});
  runtime_.control_peer(runtime_.member(spare.rank)).send(transport::kFailover, {}, to_bytes(failover));
  return true;
}

bool FailoverManager::is_being_replaced(int ps) const {
  return std::any_of(spares_.begin(), spares_.end(), [ps](const Spare& spare) {
    return spare.state == State::failing_over && spare.ps == ps;
  });
}

bool FailoverManager::is_standby(int rank) const {
  return std::any_of(spares_.begin(), spares_.end(), [rank](const Spare& spare) {
    return spare.state == State::standby && spare.rank == rank;
  });
}

std::uint32_t FailoverManager::incarnation_of(int ps) const {
  std::uint32_t incarnation = 0;  // no spare has been told yet
  for (const Spare& spare : spares_) {
    if (spare.ps == ps) incarnation = std::max(incarnation, spare.incarnation);
  }
  return incarnation;
}

bool FailoverManager::admits(const cluster::Member& ps, std::uint32_t incarnation) {
  if (incarnation == incarnation_of(ps.rank)) return true;
  log::warn("{}, pid {}, is told to end: a spare has its place, or is about to take it", ps.name(), ps.pid);
  runtime_.control().connect(ps.rank, ps.name(), ps.control_address).send(transport::kFenced, {});
  return false;
}

void FailoverManager::on_ps_complete(int ps, std::uint32_t incarnation) {
  for (Spare& spare : spares_) {
    if (incarnation > 0 && spare.ps == ps && spare.incarnation == incarnation) set(spare, State::active);
  }
  failure_reasons_.erase(ps);
}

void FailoverManager::on_ps_dead(int ps) {
  if (Spare* spare = find(State::active, ps)) set(*spare, State::dead);
}

void FailoverManager::on_spare_dead(int rank) {
  for (Spare& spare : spares_) {
    if (spare.rank != rank || spare.state == State::dead) continue;
    const State before = spare.state;
    set(spare, State::dead);
    if (before == State::standby) {
      log::warn("{} is dead; idle spares: {}", runtime_.name_of(rank), standbys());
    } else if (before == State::failing_over) {
      failure_reasons_[spare.ps] = runtime_.name_of(rank) + " died while it took its place";
      log::warn("{} died before it had the shards of {}", runtime_.name_of(rank), runtime_.name_of(spare.ps));
    }
  }
}

void FailoverManager::on_failover_failed(int rank, const std::string& why) {
  for (Spare& spare : spares_) {
    if (spare.rank != rank || spare.state != State::failing_over) continue;
    set(spare, State::dead);
    failure_reasons_[spare.ps] = fmt::format("{} could not take its place: {}", runtime_.name_of(rank), why);
    log::warn("{} could not replace {}: {}", runtime_.name_of(rank), runtime_.name_of(spare.ps), why);
  }
}

bool FailoverManager::drop_replica(const cluster::Member& ps) {
  if (!runtime_.ps_have_replicas()) return false;
  const int replica = runtime_.member(Role::spare, ps.index).rank;
  for (Spare& spare : spares_) {
    if (spare.rank != replica) continue;
    if (spare.state == State::failing_over || spare.state == State::active) return false;
    if (spare.state == State::standby) {
      log::warn("{} goes on without {}", ps.name(), runtime_.name_of(replica));
      set(spare, State::dead);
    }
  }
  return true;
}

int FailoverManager::standbys() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(spares_.begin(), spares_.end(),
                                        [](const Spare& spare) { return spare.state == State::standby; }));
}

std::string FailoverManager::role_of(int rank) const {
  const std::lock_guard lock(mutex_);
  for (const Spare& spare : spares_) {
    if (spare.rank == rank && spare.state == State::active) return fmt::format("now ps {}", spare.ps_index);
  }
  return {};
}

}  // namespace capstan::coordinator
