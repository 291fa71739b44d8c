// update_groups.hpp -- step clocks of workers, and pushes held back until a synchronous step completes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"

namespace capstan::ps {

/// One entry of a push that is held back.
struct HeldPush {
  protocol::PushHeader header;
  std::vector<std::uint32_t> rows;  // of a dynamic table: two words for each key
  std::vector<std::byte> values;
};

/// Update groups of one ps. Each worker has a clock: the number of steps that it has ended. In a
/// stale-synchronous group, the completed steps are the minimum of the clocks. In a synchronous group, pushes
/// are held back per worker until enough workers have ended the step, and are then applied in rank order.
/// Holds the pushes of one step in memory, or of two at most. Calls require the mutex of the store.
class UpdateGroups {
 public:
  /// Applies all pushes to one shard in a step, ordered by rank and by each rank's order. `workers`: number
  /// of workers that ended the step.
  using Apply = std::function<void(std::span<const HeldPush* const> pushes, int workers)>;
  /// Publishes the number of completed steps of a group.
  using Publish = std::function<void(std::uint32_t group, std::uint64_t steps)>;

  UpdateGroups(Apply apply, Publish publish) : apply_(std::move(apply)), publish_(std::move(publish)) {}

  /// Creates a group in which all listed workers take part. Throws Error(already_exists).
  void create(const protocol::CreateGroup& request);
  /// Returns true if pushes of the rank are held back until its step ends: it is a worker of a synchronous
  /// group.
  bool holds_back(std::uint32_t group, int rank) const;
  /// Returns true if a step averages the pushes instead of adding them. REQUIRES: the group exists.
  bool averages(std::uint32_t group) const { return groups_.at(group).description.average; }
  /// Copies an entry and holds it back. REQUIRES: holds_back(group, header.rank).
  void hold(std::uint32_t group, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
            std::span<const std::byte> values);
  /// Records that the worker has ended step `step`, or that it leaves the group (protocol::kLeave). Applies
  /// and publishes steps that are complete.
  void end_step(std::uint32_t group, int rank, std::uint64_t step);
  /// Lets all workers take part again from the group's current step, and drops held pushes. Throws
  /// Error(not_found).
  void restart(std::uint32_t group);
  /// Removes a dead rank from all groups: its unfinished step is dropped, and no step waits for it.
  /// Idempotent.
  void remove(int rank);
  /// Adds a worker to all groups. Its pushes are held back from the start, but no step waits for it before it
  /// has ended one.
  void join(int rank);
  /// Returns the clocks of the workers that take part. Throws Error(not_found).
  protocol::GroupClocks clocks(std::uint32_t group) const;
  /// Returns the clocks of all groups in which workers may wait for each other.
  std::vector<std::pair<std::uint32_t, protocol::GroupClocks>> all_clocks() const;

 private:
  struct Worker {
    std::uint64_t clock = 0;
    bool takes_part = true;
    bool dead = false;  // died after it had ended a step that is not applied yet
    std::vector<HeldPush> held;
  };
  struct Group {
    protocol::CreateGroup description;
    std::map<int, Worker> workers;  // by rank
    std::uint64_t steps = 0;
  };
  bool synchronous(std::uint32_t group) const;
  void advance(std::uint32_t id, Group& group);
  void apply_step(Group& group);

  Apply apply_;
  Publish publish_;
  std::map<std::uint32_t, Group> groups_;
};

}  // namespace capstan::ps
