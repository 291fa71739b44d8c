// update_groups.cpp -- maintains the clocks of workers and applies completed steps.
#include "ps/update/update_groups.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"

namespace capstan::ps {

void UpdateGroups::create(const protocol::CreateGroup& request) {
  if (groups_.contains(request.id)) {
    throw Error(Code::already_exists, "cannot create update group " + std::to_string(request.id) +
                                          ": it already exists on this ps");
  }
  Group& group = groups_[request.id];
  group.description = request;
  for (const std::int32_t rank : request.workers) group.workers[rank];
}

bool UpdateGroups::synchronous(std::uint32_t id) const {
  const auto found = groups_.find(id);
  return found != groups_.end() && found->second.description.mode == protocol::GroupMode::synchronous;
}

bool UpdateGroups::holds_back(std::uint32_t id, int rank) const {
  return synchronous(id) && groups_.at(id).workers.contains(rank);
}

void UpdateGroups::hold(std::uint32_t id, const protocol::PushHeader& header,
                        std::span<const std::uint32_t> rows, std::span<const std::byte> values) {
  groups_.at(id)
      .workers.at(static_cast<int>(header.rank))
      .held.push_back({header, {rows.begin(), rows.end()}, {values.begin(), values.end()}});
}

void UpdateGroups::end_step(std::uint32_t id, int rank, std::uint64_t step) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) {
    log::error("dropped the end of a step of rank {}: update group {} does not exist on this ps", rank, id);
    return;
  }
  Group& group = found->second;
  Worker& worker = group.workers[rank];
  worker.takes_part = step != protocol::kLeave;
  if (!worker.takes_part || step <= group.steps) {
    worker.held.clear();  // the step was completed without this worker
    worker.clock = group.steps;
  } else {
    worker.clock = synchronous(id) ? group.steps + 1 : step;
  }
  advance(id, group);
}

void UpdateGroups::advance(std::uint32_t id, Group& group) {
  const std::uint64_t before = group.steps;
  const auto taking_part = std::count_if(group.workers.begin(), group.workers.end(),
                                         [](const auto& w) { return w.second.takes_part; });
  if (taking_part == 0) return;
  if (group.description.mode == protocol::GroupMode::synchronous) {
    const auto needed = std::max<std::int64_t>(1, taking_part - group.description.backup_workers);
    const auto ready = std::count_if(group.workers.begin(), group.workers.end(), [&](const auto& w) {
      return w.second.takes_part && w.second.clock > group.steps;
    });
    if (ready >= needed) apply_step(group);
  } else {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const auto& [rank, worker] : group.workers) {
      if (worker.takes_part) least = std::min(least, worker.clock);
    }
    group.steps = std::max(group.steps, least);
  }
  if (group.steps != before) publish_(id, group.steps);
}

void UpdateGroups::apply_step(Group& group) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const HeldPush*>> by_shard;
  int workers = 0;
  for (const auto& [rank, worker] : group.workers) {
    if (!worker.takes_part || worker.clock <= group.steps) continue;
    ++workers;
    for (const HeldPush& push : worker.held)
      by_shard[{push.header.variable, push.header.shard}].push_back(&push);
  }
  for (const auto& [shard, pushes] : by_shard) apply_(pushes, workers);
  for (auto& [rank, worker] : group.workers) {
    if (worker.clock > group.steps) worker.held.clear();
  }
  std::erase_if(group.workers, [&](const auto& w) { return w.second.dead && w.second.clock > group.steps; });
  ++group.steps;
}

void UpdateGroups::restart(std::uint32_t id) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) {
    throw Error(Code::not_found,
                "cannot restart update group " + std::to_string(id) + ": it does not exist on this ps");
  }
  for (auto& [rank, worker] : found->second.workers) {
    worker = {.clock = found->second.steps, .takes_part = true, .dead = false, .held = {}};
  }
}

void UpdateGroups::remove(int rank) {
  for (auto& [id, group] : groups_) {
    const auto found = group.workers.find(rank);
    if (found == group.workers.end()) continue;
    // A step that the dead worker has ended is applied, as on the other ps; its later pushes are not.
    found->second.dead = synchronous(id) && found->second.clock > group.steps;
    if (!found->second.dead) group.workers.erase(found);
    advance(id, group);
  }
}

void UpdateGroups::join(int rank) {
  for (auto& [id, group] : groups_) {
    group.workers.try_emplace(rank,
                              Worker{.clock = group.steps, .takes_part = false, .dead = false, .held = {}});
  }
}

protocol::GroupClocks UpdateGroups::clocks(std::uint32_t id) const {
  const auto found = groups_.find(id);
  if (found == groups_.end()) {
    throw Error(Code::not_found, "cannot read the clocks of update group " + std::to_string(id) +
                                     ": it does not exist on this ps");
  }
  const Group& group = found->second;
  protocol::GroupClocks clocks{group.description.mode, group.description.bound, group.steps, {}};
  for (const auto& [rank, worker] : group.workers) {
    if (worker.takes_part) clocks.clocks.emplace_back(rank, worker.clock);
  }
  return clocks;
}

std::vector<std::pair<std::uint32_t, protocol::GroupClocks>> UpdateGroups::all_clocks() const {
  std::vector<std::pair<std::uint32_t, protocol::GroupClocks>> all;
  for (const auto& [id, group] : groups_) all.emplace_back(id, clocks(id));
  return all;
}

}  // namespace capstan::ps
