// row_usage.cpp -- approximate LRU and LFU by samples, as in Redis.
#include "ps/shard/row_usage.hpp"

#include <algorithm>

namespace capstan::ps {
namespace {

using protocol::kDefaultRow;
using protocol::kRowInUse;

constexpr std::uint32_t kTimeBits = 24;
constexpr std::uint32_t kTimeMask = (1U << kTimeBits) - 1;
constexpr std::uint32_t kMostPushes = 127;
constexpr std::uint32_t kCompared = 16;
// Bounds the time in a table with few keys, of whose rows most were used by one large push.
constexpr std::uint32_t kMostSamples = 1024;

constexpr std::uint32_t state(std::uint32_t pushes, std::uint32_t time) noexcept {
  return kRowInUse | pushes << kTimeBits | time;
}

}  // namespace

RowUsage::RowUsage(WhenFull when_full, std::uint64_t capacity, protocol::TableHeader& header,
                   std::uint32_t* states)
    : when_full_(when_full),
      capacity_(capacity),
      unit_(std::max<std::uint64_t>(1, capacity / 1024)),
      half_life_(std::max<std::uint64_t>(1, 8 * capacity / unit_)),
      header_(header),
      states_(states) {}

std::uint32_t RowUsage::now() const noexcept {
  return static_cast<std::uint32_t>(header_.pushed / unit_) & kTimeMask;
}

std::uint32_t RowUsage::age_of(std::uint32_t state) const noexcept { return (now() - state) & kTimeMask; }

std::uint32_t RowUsage::pushes_of(std::uint32_t state) const noexcept {
  const std::uint64_t halvings = age_of(state) / half_life_;
  return halvings > 6 ? 0 : (state >> kTimeBits & kMostPushes) >> halvings;
}

std::uint64_t RowUsage::value_of(std::uint32_t state) const noexcept {
  const std::uint64_t recent = kTimeMask - age_of(state);
  return when_full_ == WhenFull::evict_least_recent ? recent
                                                    : std::uint64_t{pushes_of(state)} << kTimeBits | recent;
}

std::uint32_t RowUsage::state_of_new_row() const noexcept { return state(0, now()); }

std::uint32_t RowUsage::state_of_restored_row(std::uint32_t saved) const noexcept {
  return state(saved >> kTimeBits & kMostPushes, now());
}

void RowUsage::count(std::span<const std::uint32_t> rows) noexcept {
  header_.pushed += rows.size();
  for (const std::uint32_t row : rows) {
    if (row == kDefaultRow) continue;
    states_[row] = state(std::min(pushes_of(states_[row]) + 1, kMostPushes), now());
  }
}

std::uint32_t RowUsage::choose(std::span<const std::uint32_t> chosen) noexcept {
  std::uint32_t best = kDefaultRow;
  std::uint64_t least = ~std::uint64_t{0};
  std::uint32_t samples = 0, compared = 0;
  for (; (compared < kCompared && samples < kMostSamples) || best == kDefaultRow; ++samples) {
    // Rows that were added together are often used alike, so samples are spread by a hash.
    const std::uint64_t bits = protocol::hash_of(static_cast<std::int64_t>(++header_.sampled)) >> 32;
    const auto row = static_cast<std::uint32_t>(1 + (bits * (header_.rows_end - 1) >> 32));
    if ((states_[row] & kRowInUse) == 0 || std::ranges::find(chosen, row) != chosen.end()) continue;
    ++compared;
    if (const std::uint64_t value = value_of(states_[row]); value < least) {
      least = value;
      best = row;
    }
  }
  return best;
}

}  // namespace capstan::ps
