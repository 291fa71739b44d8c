// combine.cpp -- a bitmap over the rows detects duplicate ids; a hash table locates them.
#include "client/combine.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace capstan::client {
namespace {

/// A bitmap for more rows would exceed a core's cache.
constexpr std::uint64_t kMaxBitmapRows = std::uint64_t{8} << 20;
/// How many ids ahead a slot is prefetched.
constexpr std::size_t kAhead = 16;

}  // namespace

bool Combiner::all_different(std::uint64_t rows, std::span<const std::int64_t> ids) {
  if (strictly_increasing(ids)) return true;
  if (rows > kMaxBitmapRows) {
    find_indices(ids);
    return ids_.size() == ids.size();
  }
  if (seen_.size() < rows / 64 + 1) seen_.resize(rows / 64 + 1);
  std::size_t checked = 0;
  bool duplicate = false;
  for (; checked < ids.size() && !duplicate; ++checked) {
    const auto id = static_cast<std::uint64_t>(ids[checked]);
    std::uint64_t& word = seen_[id / 64];
    const std::uint64_t bit = std::uint64_t{1} << (id % 64);
    duplicate = (word & bit) != 0;
    word |= bit;
  }
  for (std::size_t i = 0; i < checked; ++i) seen_[static_cast<std::uint64_t>(ids[i]) / 64] = 0;
  return !duplicate;
}

void Combiner::find_indices(std::span<const std::int64_t> ids) {
  const std::size_t capacity = std::bit_ceil(2 * ids.size());
  const int bits = std::countr_zero(capacity);
  if (slots_.size() != capacity || ++call_ == 0) {
    slots_.assign(capacity, Slot{0, 0, 0});
    call_ = 1;
  }
  ids_.clear();
  indices_.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size()) __builtin_prefetch(&slots_[hash_slot(ids[i + kAhead], bits)], 1);
    std::size_t at = hash_slot(ids[i], bits);
    while (slots_[at].call == call_ && slots_[at].id != ids[i]) at = (at + 1) & (capacity - 1);
    Slot& slot = slots_[at];
    if (slot.call != call_) {
      slot = {ids[i], call_, static_cast<std::uint32_t>(ids_.size())};
      ids_.push_back(ids[i]);
    }
    indices_[i] = slot.index;
  }
}

Combiner::Rows Combiner::combine(DType dtype, std::uint64_t width, std::uint64_t rows,
                                 std::span<const std::int64_t> ids, const void* values) {
  const auto* from = static_cast<const std::byte*>(values);
  if (all_different(rows, ids)) return {ids, from};
  find_indices(ids);
  const std::uint64_t row_bytes = width * size_of(dtype);
  values_.resize(ids_.size() * row_bytes);
  std::size_t started = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::byte* sum = values_.data() + indices_[i] * row_bytes;
    const std::byte* row = from + i * row_bytes;
    if (indices_[i] == started) {  // indices are in the order of first appearance
      std::memcpy(sum, row, row_bytes);
      ++started;
    } else {
      with_type(dtype, [&]<class T>(std::type_identity<T>) { add_row<T>(sum, row, width); });
    }
  }
  return {ids_, values_.data()};
}

}  // namespace capstan::client
