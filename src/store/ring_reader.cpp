// ring_reader.cpp -- polls tails, applies entries in order, publishes how far it has come.
#include "store/ring_reader.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/log.hpp"

namespace capstan::store {
namespace {

std::atomic_ref<std::uint64_t> word(std::byte* at) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at));
}

}  // namespace

shard::RingPlace RingReader::open(int rank, std::uint64_t bytes) {
  const auto place = [](const Ring& ring) {
    return shard::RingPlace{ring.piece.region, ring.piece.offset, ring.bytes};
  };
  for (const Ring& ring : rings_) {
    if (ring.rank == rank) return place(ring);
  }
  Ring ring{rank, {}, shard::round_up(bytes), 0};
  const auto left =
      std::find_if(unused_.begin(), unused_.end(), [&](const Ring& r) { return r.bytes == ring.bytes; });
  if (left != unused_.end()) {
    ring.piece = left->piece;
    unused_.erase(left);
  } else {
    ring.piece = heap_.allocate(ring.bytes);
  }
  const auto number = static_cast<std::uint64_t>(rank);
  word(board_ + layout_.tail(number)).store(0, std::memory_order_release);
  word(board_ + layout_.applied(number)).store(0, std::memory_order_release);
  rings_.push_back(ring);
  return place(ring);
}

void RingReader::close(int rank) {
  const auto found =
      std::find_if(rings_.begin(), rings_.end(), [rank](const Ring& r) { return r.rank == rank; });
  if (found != rings_.end()) {
    while (apply_from(*found, /*whatever_waits=*/true)) {
    }
    found->unfinished.abandon(sink_);
    closed_.push_back(*found);
    rings_.erase(found);
  }
  word(board_ + layout_.applied(static_cast<std::uint64_t>(rank)))
      .store(shard::kFenced, std::memory_order_release);
}

void RingReader::release(int rank) {
  for (const Ring& ring : closed_) {
    if (ring.rank == rank) unused_.push_back(ring);
  }
  std::erase_if(closed_, [rank](const Ring& ring) { return ring.rank == rank; });
}

std::uint64_t RingReader::tail_of(const Ring& ring) const noexcept {
  return word(board_ + layout_.tail(static_cast<std::uint64_t>(ring.rank))).load(std::memory_order_acquire);
}

bool RingReader::has_work() const {
  return std::any_of(rings_.begin(), rings_.end(), [this](const Ring& r) { return tail_of(r) != r.applied; });
}

bool RingReader::apply_some() {
  bool any = false;
  for (Ring& ring : rings_) {
    if (tail_of(ring) != ring.applied) any |= apply_from(ring, false);
  }
  return any;
}

bool RingReader::apply_from(Ring& ring, bool whatever_waits) {
  const std::uint64_t tail = tail_of(ring);
  if (tail == ring.applied) return false;
  auto applied = word(board_ + layout_.applied(static_cast<std::uint64_t>(ring.rank)));
  int entries = 0;
  for (; ring.applied < tail && entries < kMaxBatch; ++entries) {
    const std::uint64_t place = ring.applied % ring.bytes;
    const std::uint64_t room = std::min(ring.bytes - place, tail - ring.applied);
    shard::PushHeader header;
    header.bytes = 0;
    // Not even a header fits: the tail is nothing that a pusher writes.
    const bool aligned = (ring.applied | tail) % shard::kCacheLine == 0;
    const std::byte* at = ring.piece.data + place;
    if (aligned) std::memcpy(&header, at, sizeof header);
    const bool sparse = header.kind == shard::PushKind::sparse;
    const std::uint64_t values_at =
        sizeof header + (sparse ? shard::round_up(std::uint64_t{header.rows} * sizeof(std::uint32_t)) : 0);
    if (header.bytes < values_at || header.bytes % shard::kCacheLine != 0 || header.bytes > room) {
      log::error("the ring of rank {} holds an entry of {} bytes; its pushes up to here are dropped",
                 ring.rank, header.bytes);
      ring.unfinished.abandon(sink_);
      ring.applied = tail;
      applied.store(tail, std::memory_order_release);
      return true;
    }
    if (header.kind != shard::PushKind::padding) {
      if (!whatever_waits && !sink_.ready(header)) break;
      ring.unfinished.note(header, sink_);
      const std::byte* numbers = at + sizeof header;
      sink_.apply(header, {reinterpret_cast<const std::uint32_t*>(numbers), sparse ? header.rows : 0U},
                  at + values_at);
    }
    ring.applied += header.bytes;
    applied.store(ring.applied, std::memory_order_release);
  }
  return entries != 0;
}

}  // namespace capstan::store
