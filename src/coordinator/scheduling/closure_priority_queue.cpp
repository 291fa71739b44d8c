// closure_priority_queue.cpp -- a deque per priority in use, and always one for priority 0.
#include "coordinator/scheduling/closure_priority_queue.hpp"

#include <algorithm>
#include <utility>

namespace capstan::coordinator {

/// Returns the nonempty bucket of the highest priority.
ClosurePriorityQueue::Buckets::const_iterator ClosurePriorityQueue::first() const {
  return std::find_if(buckets_.begin(), buckets_.end(),
                      [](const auto& bucket) { return !bucket.second.empty(); });
}

void ClosurePriorityQueue::push_front(Closure closure) {
  bucket(closure.priority()).push_front(std::move(closure));
  ++size_;
}

void ClosurePriorityQueue::push_by_id(Closure closure) {
  auto& bucket = this->bucket(closure.priority());
  const auto later = std::upper_bound(bucket.begin(), bucket.end(), closure.id,
                                      [](std::uint64_t id, const Closure& other) { return id < other.id; });
  bucket.insert(later, std::move(closure));
  ++size_;
}

Closure ClosurePriorityQueue::pop() {
  const auto found = buckets_.size() == 1 ? buckets_.begin() : buckets_.find(first()->first);
  Closure closure = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty() && found->first != 0) buckets_.erase(found);
  --size_;
  return closure;
}

std::optional<Closure> ClosurePriorityQueue::remove(std::uint64_t id, int priority) {
  const auto found = buckets_.find(priority);
  if (found == buckets_.end()) return std::nullopt;
  const auto location = std::find_if(found->second.begin(), found->second.end(),
                                     [id](const Closure& closure) { return closure.id == id; });
  if (location == found->second.end()) return std::nullopt;
  Closure closure = std::move(*location);
  found->second.erase(location);
  if (found->second.empty() && priority != 0) buckets_.erase(found);
  --size_;
  return closure;
}

void ClosurePriorityQueue::drain(const std::function<void(Closure)>& take) {
  while (!empty()) take(pop());
}

}  // namespace capstan::coordinator
