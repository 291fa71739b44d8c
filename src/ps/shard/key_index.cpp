// key_index.cpp -- linear probing by cache lines, with a release store for every change that readers see.
#include "ps/shard/key_index.hpp"

#include <atomic>
#include <utility>
#include <vector>

#include "base/fence.hpp"

namespace capstan::ps {

using protocol::IndexLine;
using protocol::SubIndexLines;
using protocol::TableHeader;

namespace {

/// Returns the number of keys above which a sub-index grows: a load of 0.68 for the first to 0.78 for the
/// last, so that not all of them grow during the same push.
std::uint64_t most_keys(std::uint32_t sub, std::uint64_t lines) noexcept {
  const double load = 0.68 + 0.10 * sub / (TableHeader::kSubIndexes - 1);
  return static_cast<std::uint64_t>(load * static_cast<double>(lines * IndexLine::kEntries));
}
/// The memory of the next level is touched in advance, while the last 1/128 of these keys are inserted. Page
/// faults in the host or in a hypervisor can take longer than the rest of the growth.
constexpr std::uint64_t kTouchedWith = 128;
constexpr std::uint64_t kPageBytes = 4096;
/// Load at which a sub-index that cannot grow is full.
constexpr double kFull = 0.95;

/// Returns a line for writing; IndexLines are for readers.
IndexLine& writable(const SubIndexLines& lines, std::uint64_t at) noexcept {
  return const_cast<IndexLine&>(lines.first[at]);
}

}  // namespace

KeyIndex::KeyIndex(std::byte* memory, const protocol::TableLayout& layout, Release release)
    : memory_(memory),
      layout_(layout),
      release_(std::move(release)),
      header_(reinterpret_cast<TableHeader*>(memory)) {
  clear();
}

void KeyIndex::attach(std::uint32_t sub) noexcept {
  index_[sub] = {reinterpret_cast<IndexLine*>(memory_ + layout_.lines(sub, word(sub).level)),
                 (std::uint64_t{1} << word(sub).level) - 1};
  subs_[sub].most_keys = most_keys(sub, index_[sub].mask + 1);
  subs_[sub].touched = 0;
}

std::uint64_t KeyIndex::lines_to(std::int64_t key, std::uint64_t hash) const noexcept {
  const SubIndexLines& lines = index_.of(hash);
  for (std::uint64_t probed = 0;; ++probed) {
    const IndexLine& line = lines.first[(lines.home(hash) + probed) & lines.mask];
    if ((line.entries_with(key) & line.state) != 0) return probed + 1;
  }
}

void KeyIndex::place(const SubIndexLines& lines, std::int64_t key, std::uint64_t hash,
                     std::uint32_t row) noexcept {
  for (std::uint64_t at = lines.home(hash);; at = (at + 1) & lines.mask) {
    IndexLine& line = writable(lines, at);
    const std::uint32_t unused = ~line.state & IndexLine::kAll;
    if (unused == 0) {
      __atomic_store_n(&line.state, line.state | IndexLine::kOverflowed, __ATOMIC_RELEASE);
      continue;
    }
    const int entry = __builtin_ctz(unused);
    __atomic_store_n(&line.keys[entry], key, __ATOMIC_RELAXED);
    __atomic_store_n(&line.rows[entry], row, __ATOMIC_RELAXED);
    __atomic_store_n(&line.state, line.state | 1U << entry, __ATOMIC_RELEASE);
    return;
  }
}

bool KeyIndex::insert(std::int64_t key, std::uint64_t hash, std::uint32_t row) {
  const auto number = static_cast<std::uint32_t>(hash % TableHeader::kSubIndexes);
  Sub& sub = subs_[number];
  const bool can_grow = word(number).level < layout_.last_level();
  if (sub.keys >= sub.most_keys) {
    if (can_grow) {
      grow(number);
    } else if (static_cast<double>(sub.keys + 1) >
               kFull * static_cast<double>((index_[number].mask + 1) * IndexLine::kEntries)) {
      return false;
    }
  } else if (can_grow && sub.most_keys - sub.keys <= sub.most_keys / kTouchedWith) {
    touch_next_level(number);
  }
  place(index_[number], key, hash, row);
  ++sub.keys;
  return true;
}

/// Touches a part of the next level's pages. Repeated at each insertion, this touches all of them before the
/// sub-index grows.
void KeyIndex::touch_next_level(std::uint32_t number) noexcept {
  Sub& sub = subs_[number];
  std::byte* const lines = memory_ + layout_.lines(number, word(number).level + 1);
  const std::uint64_t bytes = 2 * (index_[number].mask + 1) * sizeof(IndexLine);
  const std::uint64_t inserts = sub.most_keys - sub.keys;
  const std::uint64_t end = sub.touched + (bytes - sub.touched + inserts - 1) / inserts;
  for (; sub.touched < end; sub.touched += kPageBytes)
    *static_cast<volatile std::byte*>(lines + sub.touched) = std::byte{0};
}

/// Increments the epoch. A reader that began before this call may read memory that is reused after it, and
/// detects that by the epoch.
void KeyIndex::begin_epoch(std::uint32_t sub) noexcept {
  __atomic_store_n(&word(sub).epoch, word(sub).epoch + 1, __ATOMIC_RELEASE);
  thread_fence(std::memory_order_release);
}

void KeyIndex::grow(std::uint32_t number) {
  const SubIndexLines before = index_[number];
  protocol::SubIndex& words = word(number);
  const SubIndexLines after{reinterpret_cast<IndexLine*>(memory_ + layout_.lines(number, words.level + 1)),
                            before.mask * 2 + 1};
  for (std::uint64_t at = 0; at <= before.mask; ++at) {
    const IndexLine& line = before.first[at];
    for (std::uint32_t i = 0; i < IndexLine::kEntries; ++i) {
      if ((line.state >> i & 1) != 0)
        place(after, line.keys[i], protocol::hash_of(line.keys[i]), line.rows[i]);
    }
  }
  __atomic_store_n(&words.level, words.level + 1, __ATOMIC_RELEASE);
  begin_epoch(number);
  attach(number);
  subs_[number].erased = 0;
  ++header_->growths;
  release_(reinterpret_cast<std::byte*>(&writable(before, 0)), (before.mask + 1) * sizeof(IndexLine));
}

void KeyIndex::erase(std::int64_t key, std::uint64_t hash) noexcept {
  const auto number = static_cast<std::uint32_t>(hash % TableHeader::kSubIndexes);
  const SubIndexLines& lines = index_[number];
  std::uint64_t at = lines.home(hash);
  std::uint32_t entries = 0;
  for (;; at = (at + 1) & lines.mask) {
    entries = lines.first[at].entries_with(key) & lines.first[at].state;
    if (entries != 0) break;
  }
  IndexLine& line = writable(lines, at);
  __atomic_store_n(&line.state, line.state & ~entries, __ATOMIC_RELEASE);
  begin_epoch(number);
  --subs_[number].keys;
  if (++subs_[number].erased > lines.mask + 1) recompute_overflow(number);
}

void KeyIndex::recompute_overflow(std::uint32_t number) noexcept {
  const SubIndexLines& lines = index_[number];
  std::vector<bool> passed(lines.mask + 1);
  for (std::uint64_t at = 0; at <= lines.mask; ++at) {
    const IndexLine& line = lines.first[at];
    for (std::uint32_t i = 0; i < IndexLine::kEntries; ++i) {
      if ((line.state >> i & 1) == 0) continue;
      for (std::uint64_t from = lines.home(protocol::hash_of(line.keys[i])); from != at;
           from = (from + 1) & lines.mask)
        passed[from] = true;
    }
  }
  for (std::uint64_t at = 0; at <= lines.mask; ++at) {
    IndexLine& line = writable(lines, at);
    const std::uint32_t used = line.state & IndexLine::kAll;
    __atomic_store_n(&line.state, passed[at] ? used | IndexLine::kOverflowed : used, __ATOMIC_RELEASE);
  }
  subs_[number].erased = 0;
}

void KeyIndex::clear() noexcept {
  for (std::uint32_t s = 0; s < TableHeader::kSubIndexes; ++s) {
    __atomic_store_n(&word(s).level, protocol::TableLayout::kFirstLevel, __ATOMIC_RELEASE);
    subs_[s] = {};
    attach(s);
  }
  // Releases all levels: a process that was killed may have left entries in a level that it had not
  // published.
  const std::uint64_t first = layout_.lines(0, protocol::TableLayout::kFirstLevel);
  release_(memory_ + first, layout_.filter() - first);
  // Last: a reader that begins in the new epoch must not find entries, whose rows are used for other keys.
  for (std::uint32_t s = 0; s < TableHeader::kSubIndexes; ++s) begin_epoch(s);
}

}  // namespace capstan::ps
