// waiting_closures.hpp -- closures that have a pending result as an argument.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "coordinator/scheduling/closure.hpp"

namespace capstan::coordinator {

/// Guarded by the queue's mutex.
class WaitingClosures {
 public:
  bool empty() const noexcept { return closures_.empty(); }
  std::size_t size() const noexcept { return closures_.size(); }
  /// Returns the number of closures for any worker.
  std::size_t for_any() const noexcept { return for_any_; }

  /// REQUIRES: !closure.ready().
  void add(Closure closure);
  /// Removes and returns the closures that became ready, or failed, because `result` was settled.
  std::vector<Closure> release(const Result& result);
  std::optional<Closure> remove(std::uint64_t id);
  std::vector<Closure> take_all();

 private:
  std::map<std::uint64_t, Closure> closures_;  // by id
  std::unordered_multimap<const Result*, std::uint64_t> waiting_for_;
  std::size_t for_any_ = 0;
};

}  // namespace capstan::coordinator
