// step_clock.hpp -- the steps of update groups that a worker takes part in.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "client/ps_connections.hpp"
#include "cluster/runtime.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::client {

/// Used by the thread that owns the data fabric. Throws what PushChannel does.
class StepClock {
 public:
  /// Both outlive the clock.
  StepClock(cluster::Runtime& runtime, PsConnections& connections)
      : runtime_(runtime), connections_(connections) {}

  /// Ends this rank's step of an update group, and waits for other workers as the group's mode demands.
  /// Returns the number of steps that have ended. `name` is the group's, for messages. Throws
  /// Error(deadline_exceeded), which names the workers that are behind.
  std::uint64_t end_step(std::uint32_t group, const std::string& name);
  /// Leaves a group, so that the others do not wait for this worker; also in a function that is cancelled.
  void leave(std::uint32_t group);

 private:
  struct Group {
    protocol::GroupMode mode = protocol::GroupMode::asynchronous;
    std::uint64_t bound = 0;
    std::uint64_t steps = 0;  // that this rank has ended
  };
  Group& join(std::uint32_t group);
  std::string slowest(std::uint32_t group);

  cluster::Runtime& runtime_;
  PsConnections& connections_;
  std::map<std::uint32_t, Group> groups_;
};

}  // namespace capstan::client
