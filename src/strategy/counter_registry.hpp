// counter_registry.hpp -- the counters of a strategy: their ps, their slots on its board, their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/runtime.hpp"
#include "strategy/context.hpp"
#include "strategy/current_restore_point.hpp"
#include "strategy/ps_contents.hpp"

namespace capstan::strategy {

/// Used by the thread that made the strategy. Counters of a previous process of this coordinator keep their
/// slots; they have no name here until the program creates them again.
class CounterRegistry {
 public:
  struct Slot {
    std::int32_t ps = 0;
    std::uint32_t index = 0;  // on the board of the ps
    auto operator<=>(const Slot&) const = default;
  };

  /// All outlive this object.
  CounterRegistry(cluster::Runtime& runtime, Context& context, CurrentRestorePoint& restore_point);

  /// Throws Error: invalid_argument, already_exists, resource_exhausted.
  Slot create(const std::string& name);
  /// Names of the counters that this program created.
  const std::set<std::string>& names() const noexcept { return created_; }
  /// Returns false if this program has not created the counter.
  bool set(const std::string& name, std::int64_t value);

  /// Runs `transfer`, a save or restore of the contents of all ps, until no spare has replaced a ps
  /// meanwhile. Returns the values of all counters, by number, as they were before the last run.
  PsContents::Counters read_before(const std::function<void()>& transfer);
  /// Returns such values by name.
  std::map<std::string, std::int64_t> by_name(const PsContents::Counters& values) const;

 private:
  std::size_t number_of(const std::string& name) const;
  Slot slot_of(std::size_t number) const;
  PsContents::Counters read();

  cluster::Runtime& runtime_;
  Context& context_;
  CurrentRestorePoint& restore_point_;
  std::vector<std::string> counters_;  // by number; those of a previous process first
  std::set<std::string> created_;
};

}  // namespace capstan::strategy
