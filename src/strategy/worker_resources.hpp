// worker_resources.hpp -- recipes of the objects that workers create for themselves, and their release.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "capstan/detail/per_worker.hpp"
#include "transport/fabric.hpp"

namespace capstan::strategy {

/// Recipes by number. A recipe lives as long as an owner of its object: a handle of the program, an
/// unfinished closure, or the recipe of another object. One thread adds; everything else is thread-safe.
/// Owners may be destroyed by any thread, and may outlive this object.
class WorkerResources {
 public:
  /// Wakes `control` when an object loses its last owner.
  explicit WorkerResources(transport::Fabric& control);
  ~WorkerResources();
  WorkerResources(const WorkerResources&) = delete;
  WorkerResources& operator=(const WorkerResources&) = delete;

  detail::ResourceHandle add(std::uint32_t function, detail::PackedArguments arguments);
  /// Returns recipes with numbers above `known`, in order of creation.
  std::vector<std::shared_ptr<const detail::ResourceRecipe>> after(std::uint64_t known) const;
  /// Returns the numbers of objects that have lost their last owner since the last call.
  std::vector<std::uint64_t> take_freed();

 private:
  struct Entry {
    detail::ResourceRecipe recipe;
    detail::WorkerObjectRefs named;  // owners of objects that its arguments name
  };
  struct State {
    void free(std::uint64_t id);
    std::mutex mutex;
    std::map<std::uint64_t, std::weak_ptr<const Entry>> living;
    std::vector<std::uint64_t> freed;
    transport::Fabric* control = nullptr;  // null once the WorkerResources is destroyed
    std::uint64_t next = 1;                // used by the thread that adds
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace capstan::strategy
