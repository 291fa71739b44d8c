// per_worker_objects.cpp -- creates and frees the per-worker objects of one worker.
#include "coordinator/worker/per_worker_objects.hpp"

#include <fmt/format.h>

#include "capstan/detail/remote_function.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan::coordinator {

std::shared_ptr<void> PerWorkerObjects::at(std::uint64_t id, const std::string& worker) {
  if (const auto created = objects_.find(id); created != objects_.end()) return created->second;
  const auto recipe = recipes_.find(id);
  if (recipe == recipes_.end()) {
    throw Error(Code::failed_precondition,
                fmt::format("per-worker object {} is not on {}: every handle on the coordinator was "
                            "destroyed; keep one as long as closures use the object",
                            id, worker));
  }
  Reader in(recipe->second.arguments);
  auto object = detail::registered_function(recipe->second.function).make(in);
  recipes_.erase(id);  // its arguments may be as large as the object
  objects_.emplace(id, object);
  return object;
}

void PerWorkerObjects::erase(std::span<const std::uint64_t> ids) {
  for (const std::uint64_t id : ids) {
    recipes_.erase(id);
    objects_.erase(id);
  }
}

void PerWorkerObjects::clear() {
  objects_.clear();
  recipes_.clear();
}

}  // namespace capstan::coordinator
