// closure_ledger.cpp -- the last closures of each worker, and those of the dead.
#include "store/closure_ledger.hpp"

#include <algorithm>
#include <utility>

namespace capstan::store {

bool ClosureLedger::enter(const shard::PushHeader& header) {
  if (header.closure == 0) return true;
  if (header.rank >= workers_.size()) workers_.resize(header.rank + 1);
  std::deque<Count>& counts = workers_[header.rank];
  if (counts.empty() || counts.back().closure != header.closure) {
    Count count{header.closure, 0};
    if (header.again != 0) {
      const auto before = of_the_dead_.find(header.closure);
      if (before != of_the_dead_.end()) count.entries = before->second;
    }
    counts.push_back(count);
    if (counts.size() > kRemembered) counts.pop_front();
  }
  std::uint32_t& entries = counts.back().entries;
  if (header.entry < entries) return false;
  entries = header.entry + 1;
  return true;
}

void ClosureLedger::close(int rank) {
  if (static_cast<std::size_t>(rank) >= workers_.size()) return;
  for (const Count& count : std::exchange(workers_[static_cast<std::size_t>(rank)], {})) {
    const auto [at, added] = of_the_dead_.try_emplace(count.closure, count.entries);
    at->second = std::max(at->second, count.entries);
    if (added) order_.push_back(count.closure);
  }
  for (; order_.size() > kMostOfTheDead; order_.pop_front()) of_the_dead_.erase(order_.front());
}

}  // namespace capstan::store
