// ring_reader.cpp -- polls tails, applies entries in order, and publishes positions.
#include "ps/ingest/ring_reader.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/log.hpp"
#include "capstan/serialize.hpp"
#include "transport/memory/word.hpp"

namespace capstan::ps {
protocol::RingLocation RingReader::open(int rank, std::uint64_t bytes) {
  const auto location = [](const Ring& ring) {
    return protocol::RingLocation{ring.piece.region, ring.piece.offset, ring.bytes};
  };
  for (const Ring& ring : rings_) {
    if (ring.rank == rank) return location(ring);
  }
  Ring ring{rank, {}, protocol::round_up(bytes), 0};
  const auto released =
      std::find_if(unused_.begin(), unused_.end(), [&](const Ring& r) { return r.bytes == ring.bytes; });
  if (released != unused_.end()) {
    ring.piece = released->piece;
    unused_.erase(released);
  } else {
    ring.piece = heap_.allocate(ring.bytes);
  }
  reset(rank);
  rings_.push_back(ring);
  if (persistent_ != nullptr) {
    const auto number = static_cast<std::uint64_t>(rank);
    persistent_->append_words(PersistentState::Record::ring,
                              {number, ring.piece.region, ring.piece.offset, ring.bytes});
  }
  return location(ring);
}

void RingReader::replay(const PersistentState& persistent, std::vector<Ring>& open, std::vector<Ring>& closed,
                        std::vector<Ring>& unused) {
  const auto move = [](std::vector<Ring>& from, std::vector<Ring>& to, int rank) {
    for (const Ring& ring : from) {
      if (ring.rank == rank) to.push_back(ring);
    }
    std::erase_if(from, [rank](const Ring& ring) { return ring.rank == rank; });
  };
  for (const PersistentState::Item& item : persistent.items()) {
    if (item.record == PersistentState::Record::ring) {
      const auto words = from_bytes<std::array<std::uint64_t, 4>>(item.bytes);
      const Piece piece{words[1], words[2], nullptr};
      std::erase_if(unused, [&](const Ring& ring) {
        return ring.piece.region == piece.region && ring.piece.offset == piece.offset;
      });
      open.push_back({static_cast<int>(words[0]), piece, words[3], persistent.applied(words[0]),
                      persistent.unfinished(words[0])});
    } else if (item.record == PersistentState::Record::ring_closed) {
      move(open, closed, static_cast<int>(from_bytes<std::uint64_t>(item.bytes)));
    } else if (item.record == PersistentState::Record::ring_released) {
      move(closed, unused, static_cast<int>(from_bytes<std::uint64_t>(item.bytes)));
    }
  }
}

void RingReader::recover() {
  replay(*persistent_, rings_, closed_, unused_);
  for (auto* rings : {&rings_, &closed_, &unused_}) {
    for (Ring& ring : *rings) ring.piece = heap_.at(ring.piece.region, ring.piece.offset);
  }
}

std::optional<std::uint64_t> RingReader::applied(int rank) const {
  for (const Ring& ring : rings_) {
    if (ring.rank == rank) return ring.applied;
  }
  return std::nullopt;
}

void RingReader::settle(int rank) {
  for (Ring& ring : rings_) {
    if (ring.rank != rank) continue;
    while (apply_from(ring, /*force=*/true)) {
    }
  }
}

void RingReader::close(int rank) {
  const auto found =
      std::find_if(rings_.begin(), rings_.end(), [rank](const Ring& r) { return r.rank == rank; });
  if (found != rings_.end()) {
    while (apply_from(*found, /*force=*/true)) {
    }
    found->unfinished.abandon(sink_);
    if (persistent_ != nullptr)
      persistent_->append_words(PersistentState::Record::ring_closed, {static_cast<std::uint64_t>(rank)});
    closed_.push_back(*found);
    rings_.erase(found);
  }
  transport::word_at(board_ + layout_.applied(static_cast<std::uint64_t>(rank)))
      .store(protocol::kFenced, std::memory_order_release);
}

void RingReader::release(int rank) {
  const auto is_of = [rank](const Ring& ring) { return ring.rank == rank; };
  if (persistent_ != nullptr && std::any_of(closed_.begin(), closed_.end(), is_of))
    persistent_->append_words(PersistentState::Record::ring_released, {static_cast<std::uint64_t>(rank)});
  for (const Ring& ring : closed_) {
    if (ring.rank == rank) unused_.push_back(ring);
  }
  std::erase_if(closed_, [rank](const Ring& ring) { return ring.rank == rank; });
}

void RingReader::reset(int rank) {
  const auto number = static_cast<std::uint64_t>(rank);
  transport::word_at(board_ + layout_.tail(number)).store(0, std::memory_order_release);
  if (persistent_ != nullptr) {
    persistent_->reset(number);
  } else {
    transport::word_at(board_ + layout_.applied(number)).store(0, std::memory_order_release);
  }
}

std::uint64_t RingReader::tail_of(const Ring& ring) const noexcept {
  return transport::word_at(board_ + layout_.tail(static_cast<std::uint64_t>(ring.rank)))
      .load(std::memory_order_acquire);
}

bool RingReader::has_work() const {
  return std::any_of(rings_.begin(), rings_.end(), [this](const Ring& ring) {
    if (tail_of(ring) == ring.applied) return false;
    // Entries that only await the replica are not work: its acknowledgement wakes the ps.
    const bool waits = !ring.unreplicated.empty() && ring.unreplicated.front().first == ring.applied &&
                       !replica_->safe(ring.unreplicated.front().second);
    return !waits || ring.sent != tail_of(ring);
  });
}

bool RingReader::apply_some() {
  bool any = false;
  for (Ring& ring : rings_) {
    if (tail_of(ring) != ring.applied) any |= apply_from(ring, false);
  }
  return any;
}

std::optional<RingReader::Entry> RingReader::entry_at(const Ring& ring, std::uint64_t position,
                                                      std::uint64_t tail) {
  // Unaligned: no correct pusher writes such positions, and the header might extend beyond the ring.
  if ((position | tail) % protocol::kCacheLine != 0) return std::nullopt;
  const std::uint64_t location = position % ring.bytes;
  const std::uint64_t available = std::min(ring.bytes - location, tail - position);
  Entry entry;
  std::memcpy(&entry.header, ring.piece.data + location, sizeof entry.header);
  entry.header.rank = static_cast<std::uint32_t>(ring.rank);
  entry.rest = ring.piece.data + location + sizeof entry.header;
  const std::uint64_t bytes = entry.header.bytes;
  const std::uint64_t numbers = protocol::number_bytes(entry.header.kind, entry.header.rows);
  if (bytes < sizeof entry.header + numbers || bytes % protocol::kCacheLine != 0 || bytes > available) {
    return std::nullopt;
  }
  return entry;
}

void RingReader::send_to_replica(Ring& ring, std::uint64_t tail) {
  while (ring.sent < tail) {
    const auto entry = entry_at(ring, ring.sent, tail);
    if (!entry) {
      ring.sent = tail;  // apply_from drops these bytes, too
      return;
    }
    if (entry->header.kind != protocol::PushKind::padding) {
      ring.unreplicated.emplace_back(
          ring.sent,
          replica_->push(entry->header, {entry->rest, entry->header.bytes - sizeof entry->header}));
    }
    ring.sent += entry->header.bytes;
  }
}

std::uint64_t RingReader::replicated_tail(Ring& ring, std::uint64_t tail) {
  if (replica_ == nullptr) return tail;
  send_to_replica(ring, tail);
  while (!ring.unreplicated.empty() && replica_->safe(ring.unreplicated.front().second))
    ring.unreplicated.pop_front();
  return ring.unreplicated.empty() ? tail : ring.unreplicated.front().first;
}

bool RingReader::apply_from(Ring& ring, bool force) {
  const std::uint64_t tail = tail_of(ring);
  if (tail == ring.applied) return false;
  const std::uint64_t safe = replicated_tail(ring, tail);
  const std::uint64_t end = force ? tail : safe;
  auto applied = transport::word_at(board_ + layout_.applied(static_cast<std::uint64_t>(ring.rank)));
  int entries = 0;
  int most = kMaxStagedBatch;
  for (; ring.applied < end && entries < most; ++entries) {
    const auto entry = entry_at(ring, ring.applied, tail);
    if (!entry) {
      log::error("dropped {} bytes of pushes in the ring of rank {}: invalid entry size at position {}",
                 tail - ring.applied, ring.rank, ring.applied);
      ring.unfinished.abandon(sink_);
      sink_.settle();
      ring.applied = tail;
      applied.store(tail, std::memory_order_release);
      return true;
    }
    const protocol::PushHeader& header = entry->header;
    if (header.in_staging_buffer == 0) most = kMaxBatch;
    if (header.kind != protocol::PushKind::padding) {
      // While a push is unfinished, the next entry continues or ends it, so a read that waits for a
      // consistent shard must not block that entry.
      if (!force && !ring.unfinished.open() && !sink_.ready(header)) break;
      // note() comes second: if the entry begins the second run of an unfinished push, note() ends the push
      // of the first run, and the shard must not become consistent in between.
      protocol::apply_entry(header, entry->rest, sink_);
      ring.unfinished.note(header, sink_);
    }
    ring.applied += header.bytes;
    if (!sink_.unsettled()) applied.store(ring.applied, std::memory_order_release);
  }
  if (sink_.unsettled()) {
    sink_.settle();
    applied.store(ring.applied, std::memory_order_release);
  }
  return entries != 0;
}

}  // namespace capstan::ps
