// pace.cpp -- the end of a worker's step, and the wait for the others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/cancellation_request.hpp"
#include "capstan/cancellation.hpp"
#include "client/client.hpp"

namespace capstan::client {
Client::Pace& Client::pace_of(std::uint32_t group) {
  const auto found = paces_.find(group);
  if (found != paces_.end()) return found->second;
  const protocol::GroupClocks clocks = link(0).clocks(group);
  return paces_[group] = {clocks.mode, static_cast<std::uint64_t>(clocks.bound), clocks.steps};
}

std::uint64_t Client::end_step(std::uint32_t group, const std::string& name) {
  throw_if_cancelled();
  Pace& pace = pace_of(group);
  const std::uint64_t step = ++pace.clock;
  const int ps = runtime_->count(Role::ps);
  for (int i = 0; i < ps; ++i) link(i).end_step(group, step);
  for (int i = 0; i < ps; ++i) link(i).flush();
  if (pace.mode == protocol::GroupMode::asynchronous) return step;

  const std::uint64_t needed =
      step - std::min(step, pace.mode == protocol::GroupMode::synchronous ? 0 : pace.bound);
  std::uint64_t most = 0;
  for (int i = 0; i < ps; ++i) {
    std::uint64_t steps = 0;
    const bool ended = link(i).wait_until([&] {
      throw_if_cancelled();
      return (steps = link(i).steps_of(group)) >= needed;
    });
    if (!ended) {
      throw Error(Code::deadline_exceeded,
                  fmt::format("waited {} ms in update group \"{}\", after step {}, for {}",
                              runtime_->patience().count(), name, step, who_is_behind(group)));
    }
    most = std::max(most, steps);
  }
  // Steps that others have ended without this rank are over for it, too.
  if (pace.mode == protocol::GroupMode::synchronous) pace.clock = std::max(step, most);
  return pace.clock;
}

/// Also in a function that is cancelled, so that the others do not wait for this worker.
void Client::leave(std::uint32_t group) {
  const CancellationScope cleaning_up(nullptr);
  for (int i = 0; i < runtime_->count(Role::ps); ++i) {
    link(i).end_step(group, protocol::kLeave);
    link(i).flush();
  }
  paces_.erase(group);  // the next step begins where the others are then
}

std::string Client::who_is_behind(std::uint32_t group) {
  std::vector<std::string> names;
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < runtime_->count(Role::ps); ++i) {
    for (const auto& [rank, clock] : link(i).clocks(group).clocks) {
      if (clock > least) continue;
      if (clock < least) names.clear();
      least = clock;
      const std::string name = runtime_->name_of(rank);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return fmt::format("{}, which {} ended {} steps", fmt::join(names, " and "),
                     names.size() == 1 ? "has" : "have", least);
}

}  // namespace capstan::client
