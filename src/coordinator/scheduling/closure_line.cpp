// closure_line.cpp -- a deque per priority in use, and always one for priority 0.
#include "coordinator/scheduling/closure_line.hpp"

#include <algorithm>
#include <utility>

namespace capstan::coordinator {

/// Returns the nonempty line of the highest priority.
ClosureLine::Lines::const_iterator ClosureLine::first() const {
  return std::find_if(lines_.begin(), lines_.end(), [](const auto& line) { return !line.second.empty(); });
}

void ClosureLine::push_front(Closure closure) {
  line(closure.priority()).push_front(std::move(closure));
  ++size_;
}

void ClosureLine::push_by_id(Closure closure) {
  auto& line = this->line(closure.priority());
  const auto later = std::upper_bound(line.begin(), line.end(), closure.id,
                                      [](std::uint64_t id, const Closure& other) { return id < other.id; });
  line.insert(later, std::move(closure));
  ++size_;
}

Closure ClosureLine::pop() {
  const auto found = lines_.size() == 1 ? lines_.begin() : lines_.find(first()->first);
  Closure closure = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty() && found->first != 0) lines_.erase(found);
  --size_;
  return closure;
}

std::optional<Closure> ClosureLine::remove(std::uint64_t id, int priority) {
  const auto found = lines_.find(priority);
  if (found == lines_.end()) return std::nullopt;
  const auto location = std::find_if(found->second.begin(), found->second.end(),
                                     [id](const Closure& closure) { return closure.id == id; });
  if (location == found->second.end()) return std::nullopt;
  Closure closure = std::move(*location);
  found->second.erase(location);
  if (found->second.empty() && priority != 0) lines_.erase(found);
  --size_;
  return closure;
}

void ClosureLine::drain(const std::function<void(Closure)>& take) {
  while (!empty()) take(pop());
}

}  // namespace capstan::coordinator
