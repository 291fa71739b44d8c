// update_group_registry.hpp -- creates and restarts update groups on every ps.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "capstan/variable.hpp"
#include "cluster/runtime.hpp"
#include "strategy/context.hpp"
#include "strategy/ps_contents.hpp"
#include "strategy/recovery.hpp"

namespace capstan::strategy {

/// Used by the thread that made the strategy, except names().
class UpdateGroupRegistry {
 public:
  /// All arguments outlive this object.
  UpdateGroupRegistry(cluster::Runtime& runtime, Context& context, const Recovery& recovery,
                      PsContents& contents);

  /// Creates a group of all workers and returns its number, from 1 on. An asynchronous group has no steps to
  /// synchronize: it has the number 0, no state on the ps, and survives their deaths. Throws Error:
  /// invalid_argument, already_exists, and for other groups resource_exhausted, and unavailable if a previous
  /// process of this coordinator had such groups.
  std::uint32_t create(const std::string& name, const Synchronization& synchronization);
  /// Makes every ps discard the unfinished steps of the group. Does nothing for group 0.
  void restart(std::uint32_t group, const std::string& name);
  /// Returns the names of the groups that are not asynchronous; group n is at index n - 1. Any thread.
  std::vector<std::string> names() const;

 private:
  void check_name_is_new(const std::string& name) const;
  void check_can_number(const std::string& name) const;

  cluster::Runtime& runtime_;
  Context& context_;
  const Recovery& recovery_;
  PsContents& contents_;
  mutable std::mutex mutex_;  // guards names_
  std::vector<std::string> names_;
  std::vector<std::string> asynchronous_names_;
};

}  // namespace capstan::strategy
