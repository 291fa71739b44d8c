// board.cpp -- atomic additions to counters.
#include "ps/server/board.hpp"

#include <fmt/format.h>

#include <atomic>

#include "capstan/error.hpp"

namespace capstan::ps {
namespace {

/// A counter, and the number of the journal entry that last added to it.
struct alignas(16) TaggedCounter {
  std::uint64_t value;
  std::uint64_t by;
};

#ifdef __clang__
#pragma clang diagnostic ignored "-Watomic-alignment"  // a call of libatomic is acceptable here
#endif
void add(std::byte* at, std::uint64_t delta, std::uint64_t by) {
  auto* counted = reinterpret_cast<TaggedCounter*>(at);
  TaggedCounter now = *counted;
  TaggedCounter next{};
  do {
    next = {now.value + delta, by};
  } while (!__atomic_compare_exchange(counted, &now, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

}  // namespace

void Board::set_steps(std::uint32_t group, std::uint64_t steps) {
  transport::word_at(data() + layout_.group(group)).store(steps, std::memory_order_release);
}

std::uint64_t Board::fetch_add(std::uint64_t counter, std::uint64_t delta) {
  if (!has_counter(counter)) {
    throw Error(Code::out_of_range, fmt::format("cannot add to counter {}: expected a number below {}",
                                                counter, protocol::BoardLayout::kCounters));
  }
  return transport::word_at(data() + layout_.counter(counter)).fetch_add(delta);
}

void Board::add_by_entry(std::uint64_t counter, std::uint64_t delta, std::uint64_t entry) {
  add(data() + layout_.counter(counter), delta, entry);
}

void Board::undo_entry(std::uint64_t counter, std::uint64_t delta, std::uint64_t entry) {
  std::byte* at = data() + layout_.counter(counter);
  if (reinterpret_cast<const TaggedCounter*>(at)->by == entry) add(at, ~delta + 1, 0);
}

}  // namespace capstan::ps
