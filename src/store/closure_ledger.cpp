// closure_ledger.cpp -- the last closures of each worker, and those of the dead.
#include "store/closure_ledger.hpp"

#include <algorithm>
#include <atomic>

namespace capstan::store {

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
  if (*counts.begun == 0 || counts.last().closure != header.closure) {
    counts.counts[*counts.begun % remembered_] = {header.closure, before};
    // A process that dies here has begun the closure, or not.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++*counts.begun;
  }
  if (header.entry < before) return false;
  counts.last().entries = header.entry + std::uint64_t{1};
  return true;
}

std::uint64_t ClosureLedger::entered(const shard::PushHeader& header) const {
  if (header.closure == 0) return 0;
  const Row counts = row_or_none(header.rank);
  if (counts.begun != nullptr && counts.last().closure == header.closure) return counts.last().entries;
  if (header.again == 0) return 0;
  const auto before = of_the_dead_.find(header.closure);
  return before == of_the_dead_.end() ? 0 : before->second;
}

void ClosureLedger::set_entered(const shard::PushHeader& header, std::uint64_t entries) {
  const Row counts = row_or_none(header.rank);
  if (header.closure == 0 || counts.begun == nullptr || counts.last().closure != header.closure) return;
  counts.last().entries = entries;
}

void ClosureLedger::close(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  const Row counts = row_or_none(at);
  if (counts.begun == nullptr) return;
  for (std::uint64_t i = *counts.begun - std::min<std::uint64_t>(*counts.begun, remembered_);
       i < *counts.begun; ++i) {
    const Count& count = counts.counts[i % remembered_];
    if (count.closure < floor_ || count.closure >= shard::kForOneWorker) continue;
    const auto [entry, added] = of_the_dead_.try_emplace(count.closure, count.entries);
    entry->second = std::max(entry->second, count.entries);
    if (added) order_.push_back(count.closure);
  }
  for (; order_.size() > kMostOfTheDead * remembered_; order_.pop_front()) of_the_dead_.erase(order_.front());
  if (kept_.empty()) own_[at].reset();
}

void ClosureLedger::gather() {
  for (std::size_t rank = 0; rank < ranks(); ++rank) close(static_cast<int>(rank));
}

void ClosureLedger::forget_before(std::uint64_t closure) {
  floor_ = std::max(floor_, closure);
  std::erase_if(of_the_dead_, [this](const auto& count) { return count.first < floor_; });
  std::erase_if(order_, [this](std::uint64_t number) { return number < floor_; });
}

}  // namespace capstan::store
