// key_index.cpp -- linear probing by cache lines, with a release store for every change that readers see.
#include "ps/shard/key_index.hpp"

#include <atomic>
#include <utility>
#include <vector>

#include "base/fence.hpp"

namespace capstan::ps {

using protocol::IndexLine;
using protocol::TableHeader;

namespace {

/// Load at which a sub-index grows: from 0.68 for the first to 0.78 for the last, so that not all of them
/// grow during the same push.
bool is_loaded(std::uint32_t sub, std::uint64_t keys, std::uint64_t lines) noexcept {
  const double load = 0.68 + 0.10 * sub / (TableHeader::kSubIndexes - 1);
  return static_cast<double>(keys) > load * static_cast<double>(lines * IndexLine::kEntries);
}
/// Load at which a sub-index that cannot grow is full.
constexpr double kFull = 0.95;

}  // namespace

KeyIndex::KeyIndex(std::byte* memory, const protocol::TableLayout& layout, Release release)
    : memory_(memory),
      layout_(layout),
      release_(std::move(release)),
      header_(reinterpret_cast<TableHeader*>(memory)) {
  clear();
}

void KeyIndex::attach(std::uint32_t sub) noexcept {
  subs_[sub].lines = reinterpret_cast<IndexLine*>(memory_ + layout_.lines(sub, word(sub).level));
  subs_[sub].mask = (std::uint64_t{1} << word(sub).level) - 1;
}

std::uint32_t KeyIndex::find(std::int64_t key, std::uint64_t hash) const noexcept {
  const Sub& sub = subs_[hash % TableHeader::kSubIndexes];
  return protocol::TableReader::find_in(sub.lines, sub.mask, key, hash);
}

void KeyIndex::place(IndexLine* lines, std::uint64_t mask, std::int64_t key, std::uint64_t hash,
                     std::uint32_t row) noexcept {
  for (std::uint64_t at = hash >> 6 & mask;; at = (at + 1) & mask) {
    IndexLine& line = lines[at];
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
  if (is_loaded(number, sub.keys + 1, sub.mask + 1)) {
    if (word(number).level < layout_.last_level()) {
      grow(number);
    } else if (static_cast<double>(sub.keys + 1) >
               kFull * static_cast<double>((sub.mask + 1) * IndexLine::kEntries)) {
      return false;
    }
  }
  place(sub.lines, sub.mask, key, hash, row);
  ++sub.keys;
  return true;
}

/// Memory that is reused after this call may be read by readers that began before it, which then notice.
void KeyIndex::begin_epoch(std::uint32_t sub) noexcept {
  __atomic_store_n(&word(sub).epoch, word(sub).epoch + 1, __ATOMIC_RELEASE);
  thread_fence(std::memory_order_release);
}

void KeyIndex::grow(std::uint32_t number) {
  Sub& sub = subs_[number];
  const Sub before = sub;
  protocol::SubIndex& words = word(number);
  auto* lines = reinterpret_cast<IndexLine*>(memory_ + layout_.lines(number, words.level + 1));
  const std::uint64_t mask = before.mask * 2 + 1;
  for (std::uint64_t at = 0; at <= before.mask; ++at) {
    const IndexLine& line = before.lines[at];
    for (std::uint32_t i = 0; i < IndexLine::kEntries; ++i) {
      if ((line.state >> i & 1) != 0)
        place(lines, mask, line.keys[i], protocol::hash_of(line.keys[i]), line.rows[i]);
    }
  }
  __atomic_store_n(&words.level, words.level + 1, __ATOMIC_RELEASE);
  begin_epoch(number);
  attach(number);
  sub.erased = 0;
  ++header_->growths;
  release_(reinterpret_cast<std::byte*>(before.lines), (before.mask + 1) * sizeof(IndexLine));
}

void KeyIndex::erase(std::int64_t key, std::uint64_t hash) noexcept {
  const auto number = static_cast<std::uint32_t>(hash % TableHeader::kSubIndexes);
  Sub& sub = subs_[number];
  for (std::uint64_t at = hash >> 6 & sub.mask;; at = (at + 1) & sub.mask) {
    IndexLine& line = sub.lines[at];
    for (std::uint32_t i = 0; i < IndexLine::kEntries; ++i) {
      if ((line.state >> i & 1) == 0 || line.keys[i] != key) continue;
      __atomic_store_n(&line.state, line.state & ~(1U << i), __ATOMIC_RELEASE);
      begin_epoch(number);
      --sub.keys;
      if (++sub.erased > sub.mask + 1) recompute_overflow(sub);
      return;
    }
  }
}

void KeyIndex::recompute_overflow(Sub& sub) noexcept {
  std::vector<bool> passed(sub.mask + 1);
  for (std::uint64_t at = 0; at <= sub.mask; ++at) {
    const IndexLine& line = sub.lines[at];
    for (std::uint32_t i = 0; i < IndexLine::kEntries; ++i) {
      if ((line.state >> i & 1) == 0) continue;
      for (std::uint64_t from = protocol::hash_of(line.keys[i]) >> 6 & sub.mask; from != at;
           from = (from + 1) & sub.mask)
        passed[from] = true;
    }
  }
  for (std::uint64_t at = 0; at <= sub.mask; ++at) {
    IndexLine& line = sub.lines[at];
    const std::uint32_t used = line.state & IndexLine::kAll;
    __atomic_store_n(&line.state, passed[at] ? used | IndexLine::kOverflowed : used, __ATOMIC_RELEASE);
  }
  sub.erased = 0;
}

void KeyIndex::clear() noexcept {
  for (std::uint32_t s = 0; s < TableHeader::kSubIndexes; ++s) {
    __atomic_store_n(&word(s).level, protocol::TableLayout::kFirstLevel, __ATOMIC_RELEASE);
    begin_epoch(s);
    subs_[s] = {};
    attach(s);
  }
  // Of all levels: a process that was killed may have left entries in one that it had not published.
  const std::uint64_t first = layout_.lines(0, protocol::TableLayout::kFirstLevel);
  release_(memory_ + first, layout_.bytes() - first);
}

}  // namespace capstan::ps
