// waiting_closures.cpp -- finds closures by the results that they wait for.
#include "coordinator/scheduling/waiting_closures.hpp"

#include <utility>

namespace capstan::coordinator {

void WaitingClosures::add(Closure closure) {
  for (const auto& input : closure.extras()->inputs) {
    if (!input.result->pending()) continue;
    input.result->awaited = true;
    waiting_for_.emplace(input.result.get(), closure.id);
  }
  if (closure.worker == kAnyWorker) ++for_any_;
  const std::uint64_t id = closure.id;
  closures_.emplace(id, std::move(closure));
}

std::optional<Closure> WaitingClosures::remove(std::uint64_t id) {
  auto node = closures_.extract(id);
  if (node.empty()) return std::nullopt;
  Closure closure = std::move(node.mapped());
  for (const auto& input : closure.extras()->inputs) {
    const auto [first, last] = waiting_for_.equal_range(input.result.get());
    for (auto it = first; it != last;) it = it->second == id ? waiting_for_.erase(it) : std::next(it);
  }
  if (closure.worker == kAnyWorker) --for_any_;
  return closure;
}

std::vector<Closure> WaitingClosures::release(const Result& result) {
  std::vector<std::uint64_t> ids;
  const auto [first, last] = waiting_for_.equal_range(&result);
  for (auto it = first; it != last; ++it) ids.push_back(it->second);
  waiting_for_.erase(first, last);
  std::vector<Closure> released;
  for (const std::uint64_t id : ids) {
    const auto found = closures_.find(id);  // removed already if the result is two of its arguments
    if (found == closures_.end()) continue;
    if (found->second.failed_input() == nullptr && !found->second.ready()) continue;
    released.push_back(std::move(*remove(id)));
  }
  return released;
}

std::vector<Closure> WaitingClosures::take_all() {
  std::vector<Closure> all;
  for (auto& [id, closure] : closures_) all.push_back(std::move(closure));
  closures_.clear();
  waiting_for_.clear();
  for_any_ = 0;
  return all;
}

}  // namespace capstan::coordinator
