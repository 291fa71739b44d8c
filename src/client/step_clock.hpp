// step_clock.hpp -- the steps of the update groups of which a worker is a member.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "client/ps_connections.hpp"
#include "cluster/runtime.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::client {

/// Used by the thread that owns the data fabric. Throws the same errors as PushChannel.
class StepClock {
 public:
  /// Both arguments must outlive this object.
  StepClock(cluster::Runtime& runtime, PsConnections& connections)
      : runtime_(runtime), connections_(connections) {}

  /// Completes this rank's step of an update group, and waits for other workers as the group's mode
  /// requires. Returns the number of completed steps. `group` is 0 for an asynchronous group, of which the ps
  /// know nothing. `name` is the name of the group. Throws Error(deadline_exceeded) with the workers that are
  /// behind.
  std::uint64_t end_step(std::uint32_t group, const std::string& name);
  /// Leaves a group, so that other workers do not wait for this one. Also works in a cancelled function.
  void leave(std::uint32_t group);

 private:
  struct Group {
    protocol::GroupMode mode = protocol::GroupMode::synchronous;
    std::uint64_t bound = 0;
    std::uint64_t steps = 0;  // completed by this rank
  };
  Group& join(std::uint32_t group);
  void flush_all();
  std::string slowest(std::uint32_t group);

  cluster::Runtime& runtime_;
  PsConnections& connections_;
  std::map<std::uint32_t, Group> groups_;
  std::map<std::string, std::uint64_t> asynchronous_steps_;  // by the name of the group
};

}  // namespace capstan::client
