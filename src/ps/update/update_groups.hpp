// update_groups.hpp -- which worker has ended which step, and pushes that wait for those of other workers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"

namespace capstan::ps {

/// A push that waits: what came in one entry.
struct HeldPush {
  protocol::PushHeader header;
  std::vector<std::uint32_t> rows;
  std::vector<std::byte> values;
};

/// The groups of one ps. Every worker has a clock: the steps that it has ended. In a stale-synchronous group
/// the steps that all have ended are the least of the clocks. In a synchronous one pushes are held back, by
/// worker, until enough workers have ended the step; then they are handed out in the order of the workers'
/// ranks. Memory: what the workers push in a step, or two. Whoever calls has locked the store.
class UpdateGroups {
 public:
  /// All that was pushed to one shard in a step, by rank and in each rank's order; of so many workers.
  using Apply = std::function<void(std::span<const HeldPush* const> pushes, int workers)>;
  /// So many steps of a group have been ended by all who are waited for.
  using Publish = std::function<void(std::uint32_t group, std::uint64_t steps)>;

  UpdateGroups(Apply apply, Publish publish) : apply_(std::move(apply)), publish_(std::move(publish)) {}

  /// Throws Error(already_exists).
  void create(const protocol::CreateGroup& request);
  /// What this rank pushes to the group waits for the end of its step. What others than workers push does
  /// not.
  bool holds_back(std::uint32_t group, int rank) const;
  /// REQUIRES: there is such a group.
  bool averages(std::uint32_t group) const { return groups_.at(group).description.average; }
  void hold(std::uint32_t group, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
            std::span<const std::byte> values);
  /// The worker of this rank has ended step `step`; protocol::kLeave says that it takes no further part.
  void end_step(std::uint32_t group, int rank, std::uint64_t step);
  /// All workers take part again, from where the group is. Throws Error(not_found).
  void restart(std::uint32_t group);
  /// A rank has died: nobody waits for it, and the step that it was in is dropped. Once for each rank is
  /// enough.
  void remove(int rank);
  /// A new worker: what it pushes waits for the end of its step, and nobody waits for it until it has ended
  /// one.
  void join(int rank);
  /// Throws Error(not_found).
  protocol::GroupClocks clocks(std::uint32_t group) const;
  /// Of all groups in which somebody may wait.
  std::vector<std::pair<std::uint32_t, protocol::GroupClocks>> all_clocks() const;

 private:
  struct Worker {
    std::uint64_t clock = 0;
    bool takes_part = true;
    bool dead = false;  // with a step that is ended here and not yet applied
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
