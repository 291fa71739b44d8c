// counter_registry.hpp -- the counters of a strategy: the ps and board slot of each, and their values.
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

/// Used by the thread that made the strategy. Counters that a previous process of this coordinator created
/// keep their slots. Until the program creates them again, names(), set() and by_name() ignore them.
class CounterRegistry {
 public:
  struct Slot {
    std::int32_t ps = 0;
    std::uint32_t index = 0;  // on the board of the ps
    auto operator<=>(const Slot&) const = default;
  };

  /// All arguments outlive this object.
  CounterRegistry(cluster::Runtime& runtime, Context& context, CurrentRestorePoint& restore_point);

  /// Creates the counter and returns its slot; a counter of a previous process keeps its slot and its value.
  /// Sets the value that a restored checkpoint has for it, if any. Throws Error: invalid_argument,
  /// already_exists, resource_exhausted.
  Slot create(const std::string& name);
  /// Returns the names of the counters that this program created.
  const std::set<std::string>& names() const noexcept { return created_; }
  /// Sets the counter's value; returns false if this program has not created the counter.
  bool set(const std::string& name, std::int64_t value);

  /// Reads all counters, then calls `transfer`, which saves or restores the contents of all ps. Repeats both
  /// if a spare replaced a ps meanwhile. Returns the counters, by number, as read before the last transfer.
  PsContents::Counters read_before(const std::function<void()>& transfer);
  /// Returns the values that read_before() returned, by name.
  std::map<std::string, std::int64_t> by_name(const PsContents::Counters& values) const;

 private:
  std::size_t number_of(const std::string& name) const;
  Slot slot_of(std::size_t number) const;
  PsContents::Counters read();

  cluster::Runtime& runtime_;
  Context& context_;
  CurrentRestorePoint& restore_point_;
  std::vector<std::string> names_by_number_;  // those of a previous process first
  std::set<std::string> created_;             // names of the counters that this program created
};

}  // namespace capstan::strategy
