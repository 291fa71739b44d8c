// per_worker_objects.hpp -- the per-worker objects of one worker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "capstan/detail/per_worker.hpp"

namespace capstan::coordinator {

/// Creates each object when a closure first uses it. Used by the thread that runs closures.
class PerWorkerObjects {
 public:
  void add(detail::ResourceRecipe recipe) { recipes_.insert_or_assign(recipe.id, std::move(recipe)); }
  /// Returns the object with this id; creates it if necessary. Throws Error(failed_precondition), which names
  /// `worker`, if the coordinator has not announced the id or has freed it, and any error of the recipe's
  /// function.
  std::shared_ptr<void> at(std::uint64_t id, const std::string& worker);
  /// Drops the objects with these ids, whether they were created or not.
  void erase(std::span<const std::uint64_t> ids);
  void clear();

 private:
  std::map<std::uint64_t, std::shared_ptr<void>> objects_;
  std::map<std::uint64_t, detail::ResourceRecipe> recipes_;  // of objects that were not created yet
};

}  // namespace capstan::coordinator
