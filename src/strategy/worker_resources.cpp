// worker_resources.cpp -- the destruction of the last owner removes a recipe.
#include "strategy/worker_resources.hpp"

#include <utility>

namespace capstan::strategy {

void WorkerResources::State::free(std::uint64_t id) {
  const std::lock_guard lock(mutex);
  living.erase(id);
  freed.push_back(id);
  if (control != nullptr) control->wake();
}

WorkerResources::WorkerResources(transport::Fabric& control) { state_->control = &control; }

WorkerResources::~WorkerResources() {
  const std::lock_guard lock(state_->mutex);
  state_->control = nullptr;
}

detail::ResourceHandle WorkerResources::add(std::uint32_t function, detail::PackedArguments arguments) {
  const std::uint64_t id = state_->next++;
  const std::shared_ptr<const Entry> entry(
      new Entry{{id, function, std::move(arguments.bytes)}, std::move(arguments.named)},
      [state = std::weak_ptr<State>(state_), id](const Entry* ended) {
        if (const auto locked = state.lock()) locked->free(id);
        delete ended;  // releases the objects that its arguments name
      });
  const std::lock_guard lock(state_->mutex);
  state_->living.emplace_hint(state_->living.end(), id, entry);
  return {id, entry};
}

std::vector<std::shared_ptr<const detail::ResourceRecipe>> WorkerResources::after(std::uint64_t known) const {
  std::vector<std::shared_ptr<const detail::ResourceRecipe>> recipes;
  const std::lock_guard lock(state_->mutex);
  for (auto at = state_->living.upper_bound(known); at != state_->living.end(); ++at) {
    if (auto entry = at->second.lock()) recipes.emplace_back(entry, &entry->recipe);
  }
  return recipes;
}

std::vector<std::uint64_t> WorkerResources::take_freed() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->freed, {});
}

}  // namespace capstan::strategy
