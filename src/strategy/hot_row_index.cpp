// hot_row_index.cpp -- CLOCK replacement: evicts the first slot that was not used since the hand passed.
#include "strategy/hot_row_index.hpp"

#include "capstan/error.hpp"

namespace capstan::strategy {

HotRowIndex::HotRowIndex(const HotRowsOptions& options) : options_(options), slot_of_(options.rows) {
  if (options.rows == 0) throw Error(Code::invalid_argument, "HotRows of 0 rows; expected 1 or more");
  slots_.resize(options.rows);
}

std::uint32_t HotRowIndex::acquire_slot() {
  for (std::size_t steps = 0; steps < 2 * slots_.size(); ++steps) {
    const std::size_t at = hand_;
    if (++hand_ == slots_.size()) hand_ = 0;
    Slot& slot = slots_[at];
    if (slot.id != kNone && slot.used_at == now_) continue;
    if (slot.referenced) {
      slot.referenced = false;
      continue;
    }
    if (slot.id != kNone) slot_of_.erase(slot.id);
    slot.id = kNone;
    return static_cast<std::uint32_t>(at);
  }
  return SlotMap::kNone;
}

const HotRowIndex::Plan& HotRowIndex::plan(std::span<const std::int64_t> ids) {
  ++now_;
  for (const std::int64_t id : overflow_ids_) slot_of_.erase(id);
  overflow_ids_.clear();
  plan_.slots.clear();
  plan_.to_read.clear();
  plan_.read_slots.clear();
  for (const std::int64_t id : ids) {
    const std::uint32_t known = slot_of_.find(id);
    if (known != SlotMap::kNone) {
      plan_.slots.push_back(known);
      if (known >= slots_.size()) continue;
      Slot& slot = slots_[known];
      if (slot.used_at == now_) continue;
      slot.used_at = now_;
      slot.referenced = true;
      if (now_ - slot.read_at <= options_.staleness) {
        ++statistics_.hits;
        continue;
      }
      ++statistics_.stale;
      slot.read_at = now_;
    } else {
      ++statistics_.misses;
      std::uint32_t at = acquire_slot();
      if (at == SlotMap::kNone) {
        at = static_cast<std::uint32_t>(slots_.size() + overflow_ids_.size());
        overflow_ids_.push_back(id);
      } else {
        slots_[at] = {id, now_, now_, false};
      }
      slot_of_.insert(id, at);
      plan_.slots.push_back(at);
    }
    plan_.to_read.push_back(id);
    plan_.read_slots.push_back(plan_.slots.back());
  }
  plan_.rows = static_cast<std::uint32_t>(slots_.size() + overflow_ids_.size());
  return plan_;
}

void HotRowIndex::evict(std::span<const std::int64_t> ids) {
  for (const std::int64_t id : ids) {
    const std::uint32_t known = slot_of_.find(id);
    if (known == SlotMap::kNone || known >= slots_.size()) continue;
    slots_[known] = {};
    slot_of_.erase(id);
  }
}

}  // namespace capstan::strategy
