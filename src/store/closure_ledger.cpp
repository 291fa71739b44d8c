// closure_ledger.cpp -- the last closures of each worker, and those of the dead.
#include "store/closure_ledger.hpp"

#include <algorithm>
#include <atomic>

namespace capstan::store {
namespace {

/// Of an entry among those of its closure's replica, in the order in which they come.
std::uint64_t position(const shard::PushHeader& header) {
  return std::uint64_t{header.call} << 32 | header.part;
}

}  // namespace

/// One closure runs at a time, so its replicas' counts are the last ones.
ClosureLedger::Count* ClosureLedger::Row::find(const shard::PushHeader& header) const {
  if (begun == nullptr) return nullptr;
  for (std::uint64_t back = 1; back <= std::min<std::uint64_t>(*begun, counts.size()); ++back) {
    Count& count = counts[(*begun - back) % counts.size()];
    if (count.closure != header.closure) return nullptr;
    if (count.replica == header.replica) return &count;
  }
  return nullptr;
}

std::size_t ClosureLedger::ranks() const noexcept {
  return kept_.empty() ? own_.size() : kept_.size() / row_bytes(remembered_);
}

ClosureLedger::Row ClosureLedger::row_at(std::byte* at) const {
  auto* counts = reinterpret_cast<Count*>(at + 2 * sizeof(std::uint64_t));
  return {reinterpret_cast<std::uint64_t*>(at), {counts, remembered_}};
}

ClosureLedger::Row ClosureLedger::row(std::size_t rank) {
  if (!kept_.empty()) return row_at(kept_.data() + rank * row_bytes(remembered_));
  if (rank >= own_.size()) own_.resize(rank + 1);
  if (!own_[rank]) own_[rank] = std::make_unique<std::byte[]>(row_bytes(remembered_));
  return row_at(own_[rank].get());
}

/// Without counts where it has begun none.
ClosureLedger::Row ClosureLedger::row_or_none(std::size_t rank) const {
  if (rank >= ranks() || (kept_.empty() && !own_[rank])) return {};
  const Row row = row_at(kept_.empty() ? own_[rank].get() : kept_.data() + rank * row_bytes(remembered_));
  return *row.begun == 0 ? Row{} : row;
}

bool ClosureLedger::enter(const shard::PushHeader& header) {
  if (header.closure == 0) return true;
  if (!kept_.empty() && header.rank >= ranks()) return true;  // no rank of this cluster
  const Row counts = row(header.rank);
  const std::uint64_t before = entered(header);
  Count* count = counts.find(header);
  if (count == nullptr) {
    counts.counts[*counts.begun % remembered_] = {header.closure, header.replica, before};
    // A process that dies here has begun the closure, or not.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++*counts.begun;
    count = &counts.last();
  }
  if (position(header) < before) return false;
  count->entries = position(header) + 1;
  return true;
}

std::uint64_t ClosureLedger::entered(const shard::PushHeader& header) const {
  if (header.closure == 0) return 0;
  if (const Count* count = row_or_none(header.rank).find(header)) return count->entries;
  if (header.again == 0) return 0;
  const auto before = of_the_dead_.find({header.closure, header.replica});
  return before == of_the_dead_.end() ? 0 : before->second;
}

void ClosureLedger::set_entered(const shard::PushHeader& header, std::uint64_t entries) {
  if (header.closure == 0) return;
  if (Count* count = row_or_none(header.rank).find(header)) count->entries = entries;
}

void ClosureLedger::close(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  const Row counts = row_or_none(at);
  if (counts.begun == nullptr) return;
  for (std::uint64_t i = *counts.begun - std::min<std::uint64_t>(*counts.begun, remembered_);
       i < *counts.begun; ++i) {
    const Count& count = counts.counts[i % remembered_];
    if (count.closure < floor_ || count.closure >= shard::kForOneWorker) continue;
    const auto [entry, added] = of_the_dead_.try_emplace({count.closure, count.replica}, count.entries);
    entry->second = std::max(entry->second, count.entries);
    if (added) order_.push_back(entry->first);
  }
  for (; order_.size() > kMostOfTheDead * remembered_; order_.pop_front()) of_the_dead_.erase(order_.front());
  if (kept_.empty()) own_[at].reset();
}

void ClosureLedger::gather() {
  for (std::size_t rank = 0; rank < ranks(); ++rank) close(static_cast<int>(rank));
}

void ClosureLedger::forget_before(std::uint64_t closure) {
  floor_ = std::max(floor_, closure);
  std::erase_if(of_the_dead_, [this](const auto& count) { return count.first.first < floor_; });
  std::erase_if(order_, [this](const Key& key) { return key.first < floor_; });
}

}  // namespace capstan::store
