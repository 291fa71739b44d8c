// dead_ranks.hpp -- which ranks are gone, for who asks from another thread.
#pragma once

#include <mutex>
#include <set>

namespace capstan::cluster {

class DeadRanks {
 public:
  void add(int rank) {
    const std::lock_guard lock(mutex_);
    ranks_.insert(rank);
  }
  /// It is back.
  void remove(int rank) {
    const std::lock_guard lock(mutex_);
    ranks_.erase(rank);
  }
  bool contains(int rank) const {
    const std::lock_guard lock(mutex_);
    return ranks_.contains(rank);
  }

 private:
  mutable std::mutex mutex_;
  std::set<int> ranks_;
};

}  // namespace capstan::cluster
