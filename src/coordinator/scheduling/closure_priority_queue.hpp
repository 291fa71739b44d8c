// closure_priority_queue.hpp -- a queue of closures by priority, then in the order of scheduling.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "coordinator/scheduling/closure.hpp"

namespace capstan::coordinator {

class ClosurePriorityQueue {
 public:
  ClosurePriorityQueue() = default;
  ClosurePriorityQueue(const ClosurePriorityQueue&) = delete;
  ClosurePriorityQueue& operator=(const ClosurePriorityQueue&) = delete;

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }

  void push_back(Closure&& closure) {
    bucket(closure.priority()).push_back(std::move(closure));
    ++size_;
  }
  /// Inserts before all closures of its priority.
  void push_front(Closure closure);
  /// Inserts before the closures of its priority that were scheduled later.
  void push_by_id(Closure closure);
  /// Returns the next closure. REQUIRES: not empty.
  const Closure& front() const { return first()->second.front(); }
  Closure pop();
  /// Removes the closure with this id; nothing if there is none.
  std::optional<Closure> remove(std::uint64_t id, int priority);
  /// Removes all closures, in order.
  void drain(const std::function<void(Closure)>& take);

 private:
  using Buckets = std::map<int, std::deque<Closure>, std::greater<>>;

  Buckets::const_iterator first() const;
  std::deque<Closure>& bucket(int priority) { return priority == 0 ? default_bucket_ : buckets_[priority]; }

  Buckets buckets_;
  std::deque<Closure>& default_bucket_ = buckets_[0];  // priority 0; the only bucket that may be empty
  std::size_t size_ = 0;
};

}  // namespace capstan::coordinator
