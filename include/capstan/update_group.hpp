// update_group.hpp -- how far workers may run apart: asynchronous, stale synchronous, synchronous.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "capstan/export.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// Pushes are applied as they come, nobody waits for anybody.
struct Asynchronous {};

/// Pushes are applied as they come; a worker that is more than `bound` steps ahead of the slowest waits for
/// it (Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS
/// 2013).
struct StaleSynchronous {
  std::int64_t bound = 0;
};

/// What the workers push in a step is summed, in the order of their indices, or averaged over them, and
/// applied once, when all but `backup_workers` of them have ended the step. What a later one has pushed for
/// it is dropped (Chen et al., "Revisiting distributed synchronous SGD", 2016).
struct Synchronous {
  bool average = true;
  int backup_workers = 0;
};

using Synchronization = std::variant<Asynchronous, StaleSynchronous, Synchronous>;

/// Variables whose workers keep step. Made on the coordinator, in a strategy's scope; given to variables as
/// VariableOptions::group; handed to closures as an argument. Every worker of the cluster takes part, until
/// it leaves or dies. docs/consistency.md says what each mode promises.
class CAPSTAN_API UpdateGroup {
 public:
  /// Throws Error: failed_precondition outside of a scope, invalid_argument for a negative bound, backup
  /// workers that leave no worker to wait for, or a name that no variable could have.
  UpdateGroup(std::string name, const Synchronization& synchronization);

  /// In a closure: ends this worker's step. Returns when what was pushed before has been applied, or dropped,
  /// and the mode lets the worker go on; the number of steps that it has ended, which skips those that others
  /// have ended without it. Throws Error: deadline_exceeded naming the workers that are behind, unavailable.
  std::int64_t end_step() const;
  /// In a closure: nobody waits for this worker any more. It comes back with its next end_step. What every
  /// closure that ends steps does last, so that those of workers that have more to do go on.
  void leave() const;
  /// On the coordinator, while no closure of the group runs: all workers that live take part again.
  void restart() const;

  const std::string& name() const noexcept { return name_; }
  std::uint32_t id() const noexcept { return id_; }

 private:
  friend struct Serializer<UpdateGroup>;
  UpdateGroup() = default;
  std::uint32_t id_ = 0;
  std::string name_;
};

template <>
struct Serializer<UpdateGroup> {
  static void write(Writer& out, const UpdateGroup& group) {
    capstan::write(out, group.id_);
    capstan::write(out, group.name_);
  }
  static UpdateGroup read(Reader& in) {
    UpdateGroup group;
    group.id_ = capstan::read<std::uint32_t>(in);
    group.name_ = capstan::read<std::string>(in);
    return group;
  }
};

}  // namespace capstan
