// worker_resources.hpp -- which objects the workers make for themselves, and which of them they may free.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "capstan/detail/per_worker.hpp"
#include "transport/fabric.hpp"

namespace capstan::strategy {

/// Recipes by number, each as long as something owns its object: a handle of the program, a closure that has
/// not ended, or the recipe of another object. One thread adds; everything else is thread-safe. Owners may be
/// destroyed by any thread, also after this.
class WorkerResources {
 public:
  /// `control` is woken when an object loses its last owner.
  explicit WorkerResources(transport::Fabric& control);
  ~WorkerResources();
  WorkerResources(const WorkerResources&) = delete;
  WorkerResources& operator=(const WorkerResources&) = delete;

  detail::ResourceHandle add(std::uint32_t function, detail::PackedArguments arguments);
  /// In order of creation, those with numbers above `known`.
  std::vector<std::shared_ptr<const detail::ResourceRecipe>> after(std::uint64_t known) const;
  /// Numbers of objects that have lost their last owner since the last call.
  std::vector<std::uint64_t> take_freed();

 private:
  struct Entry {
    detail::ResourceRecipe recipe;
    detail::WorkerObjectRefs named;  // by its arguments
  };
  struct State {
    void free(std::uint64_t id);
    std::mutex mutex;
    std::map<std::uint64_t, std::weak_ptr<const Entry>> living;
    std::vector<std::uint64_t> freed;
    transport::Fabric* control = nullptr;  // null once the WorkerResources is destroyed
    std::uint64_t next = 1;                // of the thread that adds
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace capstan::strategy
