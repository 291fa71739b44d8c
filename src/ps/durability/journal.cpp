// journal.cpp -- logs and undoes an entry. Signal fences suffice: only the compiler must be kept from
// reordering stores.
#include "ps/durability/journal.hpp"

#include <atomic>
#include <cstring>
#include <string>

#include "base/fence.hpp"
#include "capstan/error.hpp"
#include "protocol/row_copy.hpp"

namespace capstan::ps {
std::uint64_t Journal::bytes_for(std::uint64_t entry_bytes) noexcept {
  // The worst case is 16-bit values: per element, an entry carries 2 bytes and the log takes 10, the value
  // and two slots of 4 bytes. The last group of each list may have fewer rows than fit.
  const std::uint64_t groups = 1 + kLists + entry_bytes / protocol::kCacheLine;
  return sizeof(Page) + 5 * entry_bytes + groups * sizeof(LoggedGroup);
}

void Journal::begin(const protocol::PushHeader& header, std::uint64_t position, std::int64_t steps,
                    std::uint64_t entered) noexcept {
  Entry& entry = page_->entry;
  page_->valid = 0;
  signal_fence();
  ++entry.number;
  entry.header = header;
  entry.position = position;
  entry.steps = steps;
  entry.entered = entered;
  entry.logged = 0;
  signal_fence();
  page_->valid = 1;
  signal_fence();
}

void Journal::log(const Group& group, std::size_t list_number) {
  Entry& entry = page_->entry;
  std::uint64_t size = sizeof(LoggedGroup);
  for (std::size_t a = 0; a < kArrays; ++a) {
    if (group.bases[a] != nullptr) size += group.count * group.bytes[a];
  }
  size = protocol::round_up(size);
  const std::uint64_t at = std::atomic_ref(entry.logged).fetch_add(size, std::memory_order_relaxed);
  const std::uint64_t end = sizeof(Page) + at + size;
  if (end > bytes_) {
    throw Error(Code::internal, "cannot journal a push entry: its rows take " + std::to_string(end) +
                                    " bytes, expected at most " + std::to_string(bytes_));
  }
  List& list = page_->lists[list_number];
  std::byte* to = reinterpret_cast<std::byte*>(page_) + sizeof(Page) + at;
  auto& logged = *reinterpret_cast<LoggedGroup*>(to);
  to += sizeof(LoggedGroup);
  logged.before = list.entry == entry.number ? list.last : kNoGroup;
  logged.count = group.count;
  for (std::size_t a = 0; a < kArrays; ++a) {
    logged.offsets[a] = group.offsets[a];
    logged.bytes[a] = group.bases[a] != nullptr ? group.bytes[a] : 0;
    if (logged.bytes[a] == 0) continue;
    const std::byte* from = group.bases[a] + group.offsets[a];
    if (group.rows == nullptr) {
      std::memcpy(to, from, group.bytes[a]);
    } else {
      protocol::gather_rows(from, group.bytes[a], {group.rows, group.count}, {}, to);
    }
    to += group.count * group.bytes[a];
  }
  if (group.rows != nullptr) {
    std::memcpy(logged.rows, group.rows, group.count * sizeof *group.rows);
  } else {
    logged.rows[0] = 0;
  }
  signal_fence();
  list.last = at;
  signal_fence();
  list.entry = entry.number;
  signal_fence();
}

void Journal::retire() noexcept {
  page_->valid = 0;
  signal_fence();
}

Journal::Entry Journal::last() const noexcept { return page_->valid != 0 ? page_->entry : Entry{}; }

void Journal::undo(std::byte* const (&bases)[kArrays]) const noexcept {
  for (const List& list : page_->lists) {
    if (page_->entry.number != 0 && list.entry == page_->entry.number) undo_list(list, bases);
  }
}

void Journal::undo_list(const List& list, std::byte* const (&bases)[kArrays]) const noexcept {
  for (std::uint64_t at = list.last; at != kNoGroup;) {
    const std::byte* from = reinterpret_cast<const std::byte*>(page_) + sizeof(Page) + at;
    const auto& logged = *reinterpret_cast<const LoggedGroup*>(from);
    from += sizeof(LoggedGroup);
    for (std::size_t a = 0; a < kArrays; ++a) {
      for (std::uint64_t i = 0; i < logged.count && logged.bytes[a] != 0; ++i, from += logged.bytes[a]) {
        std::memcpy(bases[a] + logged.offsets[a] + logged.rows[i] * logged.bytes[a], from, logged.bytes[a]);
      }
    }
    at = logged.before;
  }
}

}  // namespace capstan::ps
