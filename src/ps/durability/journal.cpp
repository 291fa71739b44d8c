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
  // and two slots of 4 bytes.
  const std::uint64_t groups = 2 + entry_bytes / protocol::kCacheLine;
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
  entry.logged = entry.last = 0;
  signal_fence();
  page_->valid = 1;
  signal_fence();
}

void Journal::log(const Group& group) {
  Entry& entry = page_->entry;
  std::uint64_t end = sizeof(Page) + entry.logged + sizeof(LoggedGroup);
  for (std::size_t a = 0; a < kArrays; ++a) {
    if (group.bases[a] != nullptr) end += group.count * group.bytes[a];
  }
  end = protocol::round_up(end);
  if (end > bytes_) {
    throw Error(Code::internal, "cannot journal a push entry: its rows take " + std::to_string(end) +
                                    " bytes, expected at most " + std::to_string(bytes_));
  }
  std::byte* to = reinterpret_cast<std::byte*>(page_) + sizeof(Page) + entry.logged;
  auto& logged = *reinterpret_cast<LoggedGroup*>(to);
  to += sizeof(LoggedGroup);
  logged.before = entry.last;
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
  entry.last = entry.logged;
  entry.logged = end - sizeof(Page);
  signal_fence();
}

void Journal::retire() noexcept {
  page_->valid = 0;
  signal_fence();
}

Journal::Entry Journal::last() const noexcept { return page_->valid != 0 ? page_->entry : Entry{}; }

void Journal::undo(std::byte* const (&bases)[kArrays]) const noexcept {
  const Entry& entry = page_->entry;
  // After a kill in log(), `last` may be at a group that `logged` does not include. The rows of that group
  // have not changed, so undoing it is harmless.
  if (entry.logged == 0) return;
  for (std::uint64_t at = entry.last;;) {
    const std::byte* from = reinterpret_cast<const std::byte*>(page_) + sizeof(Page) + at;
    const auto& logged = *reinterpret_cast<const LoggedGroup*>(from);
    from += sizeof(LoggedGroup);
    for (std::size_t a = 0; a < kArrays; ++a) {
      for (std::uint64_t i = 0; i < logged.count && logged.bytes[a] != 0; ++i, from += logged.bytes[a]) {
        std::memcpy(bases[a] + logged.offsets[a] + logged.rows[i] * logged.bytes[a], from, logged.bytes[a]);
      }
    }
    if (at == 0) return;
    at = logged.before;
  }
}

}  // namespace capstan::ps
