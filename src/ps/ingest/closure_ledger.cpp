// closure_ledger.cpp -- keeps counts for the latest closures of live and dead workers, and for open closures.
#include "ps/ingest/closure_ledger.hpp"

#include <algorithm>
#include <atomic>

#include "base/fence.hpp"

namespace capstan::ps {
namespace {

/// Returns the position of an entry among all entries of its closure's replica; it increases in push order.
std::uint64_t position(const protocol::PushHeader& header) {
  return std::uint64_t{header.call} << 32 | header.part;
}

}  // namespace

/// Searches only the latest counts, which belong to one closure: a worker runs one closure at a time.
ClosureLedger::Count* ClosureLedger::Row::find(const protocol::PushHeader& header) const {
  if (begun == nullptr) return nullptr;
  for (std::uint64_t back = 1; back <= std::min<std::uint64_t>(*begun, counts.size()); ++back) {
    Count& count = counts[(*begun - back) % counts.size()];
    if (count.closure != header.closure) return nullptr;
    if (count.replica == header.replica) return &count;
  }
  return nullptr;
}

ClosureLedger::ClosureLedger(Capacity capacity, std::span<std::byte> memory) : capacity_(capacity) {
  const std::size_t slots = capacity_.open * capacity_.replicas;
  if (memory.empty()) {
    if (slots != 0) own_open_ = std::make_unique<OpenCount[]>(slots);
    open_ = {own_open_.get(), slots};
  } else {
    open_ = {reinterpret_cast<OpenCount*>(memory.data()), slots};
    memory_ = memory.subspan(open_bytes(capacity_));
  }
}

std::size_t ClosureLedger::ranks() const noexcept {
  return memory_.empty() ? own_.size() : memory_.size() / row_bytes(capacity_);
}

ClosureLedger::Row ClosureLedger::row_at(std::byte* at) const {
  auto* counts = reinterpret_cast<Count*>(at + 2 * sizeof(std::uint64_t));
  return {reinterpret_cast<std::uint64_t*>(at), {counts, capacity_.of_worker * capacity_.replicas}};
}

ClosureLedger::Row ClosureLedger::row(std::size_t rank) {
  if (!memory_.empty()) return row_at(memory_.data() + rank * row_bytes(capacity_));
  if (rank >= own_.size()) own_.resize(rank + 1);
  if (!own_[rank]) own_[rank] = std::make_unique<std::byte[]>(row_bytes(capacity_));
  return row_at(own_[rank].get());
}

/// Returns an empty row if the rank has begun no closure.
ClosureLedger::Row ClosureLedger::row_or_none(std::size_t rank) const {
  if (rank >= ranks() || (memory_.empty() && !own_[rank])) return {};
  const Row row = row_at(memory_.empty() ? own_[rank].get() : memory_.data() + rank * row_bytes(capacity_));
  return *row.begun == 0 ? Row{} : row;
}

ClosureLedger::OpenCount* ClosureLedger::open_slot(const protocol::PushHeader& header) const {
  if (open_.empty() || header.closure >= protocol::kForOneWorker || header.replica >= capacity_.replicas)
    return nullptr;
  OpenCount& slot = open_[header.closure % capacity_.open * capacity_.replicas + header.replica];
  return slot.closure > header.closure ? nullptr : &slot;
}

bool ClosureLedger::enter(const protocol::PushHeader& header) {
  if (header.closure == 0) return true;
  if (!memory_.empty() && header.rank >= ranks()) return true;  // not a rank of this job
  const Row counts = row(header.rank);
  const std::uint64_t before = entered(header);
  Count* count = counts.find(header);
  if (count == nullptr) {
    counts.counts[*counts.begun % counts.counts.size()] = {header.closure, header.replica, before};
    // The increment is the commit: after a kill the closure has either begun or not.
    signal_fence();
    ++*counts.begun;
    count = &counts.last();
  }
  if (position(header) < before) return false;
  count->entries = position(header) + 1;
  if (OpenCount* slot = open_slot(header)) {
    if (slot->closure != header.closure) {
      slot->entries = before;  // the closure that used the slot cannot run again
      signal_fence();
      slot->closure = header.closure;
      signal_fence();
    }
    slot->entries = position(header) + 1;
  }
  return true;
}

std::uint64_t ClosureLedger::entered(const protocol::PushHeader& header) const {
  if (header.closure == 0) return 0;
  std::uint64_t entries = 0;
  if (const Count* count = row_or_none(header.rank).find(header)) {
    entries = count->entries;
  } else if (header.again != 0) {
    const auto dead = dead_counts_.find({header.closure, header.replica});
    if (dead != dead_counts_.end()) entries = dead->second;
  }
  if (header.again == 0) return entries;
  // After a restart of the coordinator, the earlier run may have been on another worker that is still alive.
  // Its count is in the table of open closures.
  const OpenCount* slot = open_slot(header);
  return slot == nullptr || slot->closure != header.closure ? entries : std::max(entries, slot->entries);
}

void ClosureLedger::set_entered(const protocol::PushHeader& header, std::uint64_t entries) {
  if (header.closure == 0) return;
  if (Count* count = row_or_none(header.rank).find(header)) count->entries = entries;
  if (OpenCount* slot = open_slot(header); slot != nullptr && slot->closure == header.closure)
    slot->entries = entries;
}

void ClosureLedger::close(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  const Row counts = row_or_none(at);
  if (counts.begun == nullptr) return;
  const std::uint64_t size = counts.counts.size();
  for (std::uint64_t i = *counts.begun - std::min(*counts.begun, size); i < *counts.begun; ++i) {
    const Count& count = counts.counts[i % size];
    if (count.closure >= protocol::kForOneWorker) continue;
    const auto [entry, added] = dead_counts_.try_emplace({count.closure, count.replica}, count.entries);
    entry->second = std::max(entry->second, count.entries);
    if (added) dead_order_.push_back(entry->first);
  }
  for (; dead_order_.size() > kRetainedDeadWorkers * size; dead_order_.pop_front())
    dead_counts_.erase(dead_order_.front());
  if (memory_.empty()) own_[at].reset();
}

}  // namespace capstan::ps
