// key_search.cpp -- compares a key with all entries of a line at a time, by the widest vectors of the CPU.
#include "protocol/key_search.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "protocol/key_search.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::protocol::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if defined(__SANITIZE_THREAD__) || HWY_TARGET == HWY_SCALAR
HWY_INLINE std::uint32_t entries_with(const IndexLine& line, std::int64_t key) {
  return line.entries_with(key);
}
#else
/// As IndexLine::entries_with. Vectors of 64 bytes also compare the rows, whose bits no state has.
///
/// The loads are not atomic for the compiler, but aligned elements of 8 bytes are not torn. They stay behind
/// the acquire load of `state`; the client's acquire fence before Epochs::check() orders them before that
/// check.
HWY_INLINE std::uint32_t entries_with(const IndexLine& line, std::int64_t key) {
  const hn::CappedTag<std::int64_t, 8> d;
  const auto wanted = hn::Set(d, key);
  std::uint32_t equal = 0;
  for (std::size_t i = 0; i < IndexLine::kEntries; i += hn::Lanes(d)) {
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, hn::Eq(hn::Load(d, line.keys + i), wanted), bits);
    equal |= std::uint32_t{bits[0]} << i;
  }
  return equal & IndexLine::kAll;
}
#endif

/// Finds keys in three stages, so that no stage waits for memory: prefetch(i) fetches the line in which the
/// search for keys[i] begins, look(i) searches this line, and finish(i) searches the lines behind it. The
/// distances between the stages were measured (docs/performance.md#dynamic-tables).
class KeySearch {
 public:
  KeySearch(const IndexLines& index, const std::int64_t* keys, std::uint64_t count, std::uint32_t* rows)
      : index_(index), keys_(keys), count_(count), rows_(rows) {}

  void find_all() {
    for (std::uint64_t i = 0; i < std::min(kAhead, count_); ++i) prefetch(i);
    for (std::uint64_t i = 0; i < count_ + kBehind; ++i) {
      if (i < count_) look(i);
      if (i + kAhead < count_) prefetch(i + kAhead);
      if (i >= kBehind) finish(i - kBehind);
    }
  }

 private:
  /// Covers the latency of a miss of the TLB and of all caches.
  static constexpr std::uint64_t kAhead = 64;
  static constexpr std::uint64_t kBehind = 16;
  /// Row of a key that is not in its first line, but may be in the next one.
  static constexpr std::uint32_t kInLaterLine = ~std::uint32_t{0};
  static_assert(kInLaterLine >= TableLayout::kMaxRows);

  HWY_INLINE void prefetch(std::uint64_t i) {
    const IndexLine* line = index_.home(hash_of(keys_[i]));
    homes_[i % kAhead] = line;
    hwy::Prefetch(line);
  }

  HWY_INLINE void look(std::uint64_t i) {
    const IndexLine& line = *homes_[i % kAhead];
    const std::uint32_t state = __atomic_load_n(&line.state, __ATOMIC_ACQUIRE);
    const std::uint32_t equal = entries_with(line, keys_[i]) & state;
    if (HWY_LIKELY(equal != 0)) {
      rows_[i] = __atomic_load_n(&line.rows[std::countr_zero(equal)], __ATOMIC_RELAXED);
    } else if ((state & IndexLine::kOverflowed) == 0) {
      rows_[i] = kDefaultRow;
    } else {
      rows_[i] = kInLaterLine;
      hwy::Prefetch(&line + 1);  // useless for the last line of a sub-index, behind which the first one comes
    }
  }

  HWY_INLINE void finish(std::uint64_t i) {
    if (HWY_UNLIKELY(rows_[i] == kInLaterLine)) rows_[i] = find_key(index_, keys_[i], hash_of(keys_[i]));
  }

  const IndexLines& index_;
  const std::int64_t* keys_;
  std::uint64_t count_;
  std::uint32_t* rows_;
  const IndexLine* homes_[kAhead];  // of the next keys
};

void find(const IndexLines& index, const std::int64_t* keys, std::uint64_t count, std::uint32_t* rows) {
  KeySearch(index, keys, count, rows).find_all();
}

}  // namespace capstan::protocol::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::protocol {

HWY_EXPORT(find);

void find_keys(const IndexLines& index, std::span<const std::int64_t> keys, std::span<std::uint32_t> rows) {
  HWY_DYNAMIC_DISPATCH(find)(index, keys.data(), keys.size(), rows.data());
}

}  // namespace capstan::protocol
#endif
