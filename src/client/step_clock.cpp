// step_clock.cpp -- completes a worker's steps, and waits for other workers.
#include "client/step_clock.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/cancellation_request.hpp"
#include "capstan/cancellation.hpp"

namespace capstan::client {

StepClock::Group& StepClock::join(std::uint32_t group) {
  const auto found = groups_.find(group);
  if (found != groups_.end()) return found->second;
  const protocol::GroupClocks clocks = connections_.at(0).clocks(group);
  return groups_[group] = {clocks.mode, static_cast<std::uint64_t>(clocks.bound), clocks.steps};
}

void StepClock::flush_all() {
  for (int i = 0; i < runtime_.count(Role::ps); ++i) connections_.at(i).flush();
}

std::uint64_t StepClock::end_step(std::uint32_t id, const std::string& name) {
  throw_if_cancelled();
  if (id == 0) {
    flush_all();
    return ++asynchronous_steps_[name];
  }
  Group& group = join(id);
  const std::uint64_t step = ++group.steps;
  const int ps = runtime_.count(Role::ps);
  for (int i = 0; i < ps; ++i) connections_.at(i).end_step(id, step);
  flush_all();

  const std::uint64_t needed =
      step - std::min(step, group.mode == protocol::GroupMode::synchronous ? 0 : group.bound);
  std::uint64_t max_steps = 0;
  for (int i = 0; i < ps; ++i) {
    std::uint64_t steps = 0;
    PsConnection& connection = connections_.at(i);
    const bool completed = connection.wait_until([&] {
      throw_if_cancelled();
      return (steps = connection.reads().steps(id)) >= needed;
    });
    if (!completed) {
      throw Error(Code::deadline_exceeded,
                  fmt::format("waited {} ms in update group \"{}\", after step {}, for {}",
                              runtime_.wait_timeout().count(), name, step, slowest(id)));
    }
    max_steps = std::max(max_steps, steps);
  }
  // Steps that other workers completed without this rank count as completed for it, too.
  if (group.mode == protocol::GroupMode::synchronous) group.steps = std::max(step, max_steps);
  return group.steps;
}

void StepClock::leave(std::uint32_t group) {
  const CancellationScope cleaning_up(nullptr);
  if (group == 0) return flush_all();
  for (int i = 0; i < runtime_.count(Role::ps); ++i) {
    connections_.at(i).end_step(group, protocol::kLeave);
    connections_.at(i).flush();
  }
  groups_.erase(group);  // join() then starts from the current step of the group
}

std::string StepClock::slowest(std::uint32_t group) {
  std::vector<std::string> names;
  std::uint64_t min_steps = ~std::uint64_t{0};
  for (int i = 0; i < runtime_.count(Role::ps); ++i) {
    for (const auto& [rank, clock] : connections_.at(i).clocks(group).clocks) {
      if (clock > min_steps) continue;
      if (clock < min_steps) names.clear();
      min_steps = clock;
      const std::string name = runtime_.name_of(rank);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return fmt::format("{}, which {} completed {} steps", fmt::join(names, " and "),
                     names.size() == 1 ? "has" : "have", min_steps);
}

}  // namespace capstan::client
