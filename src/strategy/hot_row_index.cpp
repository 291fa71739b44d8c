// hot_row_index.cpp -- CLOCK replacement: evicts the first slot that was not used since the hand passed.
#include "strategy/hot_row_index.hpp"

#include "capstan/error.hpp"

namespace capstan::strategy {
namespace {

constexpr std::uint32_t kNoSlot = 0xFFFFFFFF;

}  // namespace

HotRowIndex::HotRowIndex(const HotRowsOptions& options) : options_(options) {
  if (options.rows == 0) throw Error(Code::invalid_argument, "HotRows of 0 rows; expected 1 or more");
  locations_.resize(options.rows);
  slot_of_.reserve(options.rows);
}

/// Evicts the row of a slot that this lookup does not use; returns kNoSlot if it uses all.
std::uint32_t HotRowIndex::evict() {
  for (std::size_t looks = 0; looks < 2 * locations_.size(); ++looks) {
    const std::size_t at = hand_;
    hand_ = (hand_ + 1) % locations_.size();
    Location& location = locations_[at];
    if (location.id != kNone && location.used_at == now_) continue;
    if (location.again) {
      location.again = false;
      continue;
    }
    if (location.id != kNone) slot_of_.erase(location.id);
    location.id = kNone;
    return static_cast<std::uint32_t>(at);
  }
  return kNoSlot;
}

const HotRowIndex::Plan& HotRowIndex::plan(std::span<const std::int64_t> ids) {
  ++now_;
  for (const std::int64_t id : beyond_) slot_of_.erase(id);
  beyond_.clear();
  plan_.locations.clear();
  plan_.to_read.clear();
  plan_.to_locations.clear();
  for (const std::int64_t id : ids) {
    const auto known = slot_of_.find(id);
    if (known != slot_of_.end()) {
      plan_.locations.push_back(known->second);
      if (known->second >= locations_.size()) continue;
      Location& location = locations_[known->second];
      if (location.used_at == now_) continue;
      location.used_at = now_;
      location.again = true;
      if (now_ - location.read_at <= options_.staleness) {
        ++statistics_.hits;
        continue;
      }
      ++statistics_.stale;
      location.read_at = now_;
    } else {
      ++statistics_.misses;
      std::uint32_t at = evict();
      if (at == kNoSlot) {
        at = static_cast<std::uint32_t>(locations_.size() + beyond_.size());
        beyond_.push_back(id);
      } else {
        locations_[at] = {id, now_, now_, false};
      }
      slot_of_.emplace(id, at);
      plan_.locations.push_back(at);
    }
    plan_.to_read.push_back(id);
    plan_.to_locations.push_back(plan_.locations.back());
  }
  plan_.rows = static_cast<std::uint32_t>(locations_.size() + beyond_.size());
  return plan_;
}

void HotRowIndex::evict(std::span<const std::int64_t> ids) {
  for (const std::int64_t id : ids) {
    const auto known = slot_of_.find(id);
    if (known == slot_of_.end()) continue;
    if (known->second < locations_.size()) {
      locations_[known->second] = {};
      slot_of_.erase(known);
    }
  }
}

}  // namespace capstan::strategy
