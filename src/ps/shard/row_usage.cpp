// row_usage.cpp -- approximate LRU and LFU by samples, as in Redis; ages by a sweep over all rows.
#include "ps/shard/row_usage.hpp"

#include <algorithm>

namespace capstan::ps {
namespace {

using protocol::kDefaultRow;
using protocol::kRowInUse;

constexpr std::uint32_t kTimeBits = 24;
constexpr std::uint32_t kTimeMask = (1U << kTimeBits) - 1;
constexpr std::uint32_t kMaxPushes = 127;
constexpr std::uint32_t kCompared = 16;
// Prefetch distance, in samples. Exceeds the number of cache misses that a core can have outstanding.
constexpr std::uint64_t kSamplesAhead = 32;
// Number of sweeps over all rows while a row reaches the age at which it is evicted.
constexpr std::uint64_t kSweepsPerAge = 5;
constexpr std::uint64_t kMaxExamined = 4096;
// Bounds the time in a table where few rows are in use, such as after most keys were erased.
constexpr std::uint32_t kMaxSamples = 1024;

constexpr std::uint32_t state(std::uint32_t pushes, std::uint32_t time) noexcept {
  return kRowInUse | pushes << kTimeBits | time;
}

}  // namespace

RowUsage::RowUsage(const protocol::TablePolicy& policy, std::uint64_t capacity, protocol::TableHeader& header,
                   std::uint32_t* states)
    : policy_(policy),
      capacity_(capacity),
      unit_(std::max<std::uint64_t>(1, (policy.evict_after != 0 ? policy.evict_after : capacity) / 1024)),
      half_life_(std::max<std::uint64_t>(
          1, (policy.evict_after != 0 ? policy.evict_after / 8 : 8 * capacity) / unit_)),
      header_(header),
      states_(states) {}

std::uint32_t RowUsage::now() const noexcept {
  return static_cast<std::uint32_t>(header_.pushed / unit_) & kTimeMask;
}

std::uint32_t RowUsage::age_of(std::uint32_t state) const noexcept { return (now() - state) & kTimeMask; }

std::uint32_t RowUsage::pushes_of(std::uint32_t state) const noexcept {
  const std::uint64_t halvings = age_of(state) / half_life_;
  return halvings > 6 ? 0 : (state >> kTimeBits & kMaxPushes) >> halvings;
}

std::uint64_t RowUsage::value_of(std::uint32_t state) const noexcept {
  const std::uint64_t recent = kTimeMask - age_of(state);
  return policy_.when_full == WhenFull::evict_least_recent
             ? recent
             : std::uint64_t{pushes_of(state)} << kTimeBits | recent;
}

std::uint32_t RowUsage::state_of_new_row() const noexcept { return state(0, now()); }

std::uint32_t RowUsage::state_of_restored_row(std::uint32_t saved) const noexcept {
  return state(saved >> kTimeBits & kMaxPushes, now());
}

std::uint64_t RowUsage::rows_to_examine() const noexcept {
  if (policy_.evict_after == 0) return 0;
  const std::uint64_t rows = header_.rows_end - 1;  // no row is examined twice for an entry
  return std::min({kMaxExamined, rows, rows * kSweepsPerAge / policy_.evict_after + 1});
}

std::size_t RowUsage::find_old(std::span<std::uint32_t> out, std::uint64_t* left) noexcept {
  const std::uint64_t limit = policy_.evict_after / unit_;
  std::size_t found = 0;
  for (; *left > 0 && found < out.size(); --*left) {
    header_.examined = header_.examined + 1 < header_.rows_end ? header_.examined + 1 : kDefaultRow + 1;
    const auto row = static_cast<std::uint32_t>(header_.examined);
    if ((states_[row] & kRowInUse) != 0 && age_of(states_[row]) > limit) out[found++] = row;
  }
  return found;
}

void RowUsage::count(std::span<const std::uint32_t> rows, bool begins_push) noexcept {
  header_.pushed += policy_.evict_after == 0 ? rows.size() : begins_push ? 1 : 0;
  for (const std::uint32_t row : rows) {
    if (row == kDefaultRow) continue;
    states_[row] = state(std::min(pushes_of(states_[row]) + 1, kMaxPushes), now());
  }
}

std::uint32_t RowUsage::sample(std::uint64_t number) const noexcept {
  // Rows that were added together are often used alike, so samples are spread by a hash.
  const std::uint64_t bits = protocol::hash_of(static_cast<std::int64_t>(number)) >> 32;
  return static_cast<std::uint32_t>(1 + (bits * (header_.rows_end - 1) >> 32));
}

std::uint32_t RowUsage::choose(std::span<const std::uint32_t> chosen) noexcept {
  std::uint32_t best = kDefaultRow;
  std::uint64_t least = ~std::uint64_t{0};
  std::uint32_t samples = 0, compared = 0;
  for (; (compared < kCompared && samples < kMaxSamples) || best == kDefaultRow; ++samples) {
    __builtin_prefetch(&states_[sample(header_.sampled + kSamplesAhead)]);
    const std::uint32_t row = sample(++header_.sampled);
    if ((states_[row] & kRowInUse) == 0) continue;
    ++compared;
    const std::uint64_t value = value_of(states_[row]);
    if (value >= least || std::ranges::find(chosen, row) != chosen.end()) continue;
    least = value;
    best = row;
  }
  return best;
}

}  // namespace capstan::ps
