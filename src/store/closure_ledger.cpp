// closure_ledger.cpp -- the last closures of each worker, and those of the dead.
#include "store/closure_ledger.hpp"

#include <algorithm>
#include <atomic>

namespace capstan::store {

ClosureLedger::Row& ClosureLedger::row(std::size_t rank) {
  if (!kept_.empty()) return kept_[rank];
  if (rank >= own_.size()) own_.resize(rank + 1);
  if (!own_[rank]) own_[rank] = std::make_unique<Row>();
  return *own_[rank];
}

bool ClosureLedger::enter(const shard::PushHeader& header) {
  if (header.closure == 0) return true;
  if (!kept_.empty() && header.rank >= kept_.size()) return true;  // no rank of this cluster
  Row& counts = row(header.rank);
  const std::uint64_t before = entered(header);
  if (const Count* last = last_of(header.rank); last == nullptr || last->closure != header.closure) {
    counts.counts[counts.begun % kRemembered] = {header.closure, before};
    // A process that dies here has begun the closure, or not.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++counts.begun;
  }
  if (header.entry < before) return false;
  counts.counts[(counts.begun - 1) % kRemembered].entries = header.entry + std::uint64_t{1};
  return true;
}

const ClosureLedger::Count* ClosureLedger::last_of(std::size_t rank) const {
  const Row* counts = nullptr;
  if (!kept_.empty()) {
    counts = rank < kept_.size() ? &kept_[rank] : nullptr;
  } else if (rank < own_.size()) {
    counts = own_[rank].get();
  }
  return counts == nullptr || counts->begun == 0 ? nullptr
                                                 : &counts->counts[(counts->begun - 1) % kRemembered];
}

std::uint64_t ClosureLedger::entered(const shard::PushHeader& header) const {
  if (header.closure == 0) return 0;
  const Count* last = last_of(header.rank);
  if (last != nullptr && last->closure == header.closure) return last->entries;
  if (header.again == 0) return 0;
  const auto before = of_the_dead_.find(header.closure);
  return before == of_the_dead_.end() ? 0 : before->second;
}

void ClosureLedger::set_entered(const shard::PushHeader& header, std::uint64_t entries) {
  const Count* last = last_of(header.rank);
  if (header.closure == 0 || last == nullptr || last->closure != header.closure) return;
  Row& counts = row(header.rank);
  counts.counts[(counts.begun - 1) % kRemembered].entries = entries;
}

void ClosureLedger::close(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (at >= (kept_.empty() ? own_.size() : kept_.size())) return;
  if (kept_.empty() && !own_[at]) return;
  const Row& counts = row(at);
  for (std::uint64_t i = counts.begun - std::min<std::uint64_t>(counts.begun, kRemembered); i < counts.begun;
       ++i) {
    const Count& count = counts.counts[i % kRemembered];
    const auto [entry, added] = of_the_dead_.try_emplace(count.closure, count.entries);
    entry->second = std::max(entry->second, count.entries);
    if (added) order_.push_back(count.closure);
  }
  for (; order_.size() > kMostOfTheDead; order_.pop_front()) of_the_dead_.erase(order_.front());
  if (kept_.empty()) own_[at].reset();
}

}  // namespace capstan::store
