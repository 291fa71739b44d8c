// key_search.cpp -- compares a key with all entries of a line at a time, by the widest vectors of the CPU.
#include "protocol/key_search.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "protocol/key_search.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "protocol/row_copy_loop.hpp"

HWY_BEFORE_NAMESPACE();
namespace capstan::protocol::HWY_NAMESPACE {

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

/// Finds the keys of a call, one after another, and prefetches the lines of the next keys meanwhile.
class KeySearch {
 public:
  KeySearch(const IndexLines& index, const std::int64_t* keys, std::uint64_t count)
      : index_(index), keys_(keys), count_(count) {
    for (std::uint64_t i = 0; i < std::min(kAhead, count); ++i) prefetch(i);
  }

  /// Returns the row of keys[i], or kDefaultRow. REQUIRES: i is 0, 1, 2, ...
  HWY_INLINE std::uint32_t find(std::uint64_t i) {
    const IndexLine& line = *homes_[i % kAhead];
    if (i + kAhead < count_) prefetch(i + kAhead);
    const std::uint32_t state = __atomic_load_n(&line.state, __ATOMIC_ACQUIRE);
    const std::uint32_t equal = entries_with(line, keys_[i]) & state;
    if (HWY_LIKELY(equal != 0)) return __atomic_load_n(&line.rows[std::countr_zero(equal)], __ATOMIC_RELAXED);
    if ((state & IndexLine::kOverflowed) == 0) return kDefaultRow;
    return find_key(index_, keys_[i], hash_of(keys_[i]));
  }

 private:
  /// Covers the latency of a miss of the TLB and of all caches (docs/performance.md).
  static constexpr std::uint64_t kAhead = 16;

  HWY_INLINE void prefetch(std::uint64_t i) {
    const IndexLine* line = index_.home(hash_of(keys_[i]));
    homes_[i % kAhead] = line;
    hwy::Prefetch(line);
  }

  const IndexLines& index_;
  const std::int64_t* keys_;
  std::uint64_t count_;
  const IndexLine* homes_[kAhead];  // of the next keys
};

void find(const IndexLines& index, const std::int64_t* keys, std::uint64_t count, std::uint32_t* rows) {
  KeySearch search(index, keys, count);
  for (std::uint64_t i = 0; i < count; ++i) rows[i] = search.find(i);
}

void gather(const IndexLines& index, const std::byte* values, std::uint64_t row_bytes,
            const std::int64_t* keys, std::uint64_t count, std::uint32_t* rows, const std::uint32_t* order,
            std::byte* out) {
  KeySearch search(index, keys, count);
  const auto source = [=](std::uint64_t i) { return values + rows[i] * row_bytes; };
  const auto upcoming = [&](std::uint64_t i) {
    rows[i] = search.find(i);
    return source(i);
  };
  if (order == nullptr) {
    copy_rows(count, row_bytes, upcoming, source, [=](std::uint64_t i) { return out + i * row_bytes; });
  } else {
    copy_rows(count, row_bytes, upcoming, source,
              [=](std::uint64_t i) { return out + order[i] * row_bytes; });
  }
}

}  // namespace capstan::protocol::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::protocol {

HWY_EXPORT(find);
HWY_EXPORT(gather);

void find_keys(const IndexLines& index, std::span<const std::int64_t> keys, std::span<std::uint32_t> rows) {
  HWY_DYNAMIC_DISPATCH(find)(index, keys.data(), keys.size(), rows.data());
}

void gather_keys(const IndexLines& index, const std::byte* values, std::uint64_t row_bytes,
                 std::span<const std::int64_t> keys, std::span<std::uint32_t> rows,
                 std::span<const std::uint32_t> order, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(gather)
  (index, values, row_bytes, keys.data(), keys.size(), rows.data(), order.empty() ? nullptr : order.data(),
   out);
}

}  // namespace capstan::protocol
#endif
