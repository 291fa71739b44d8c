// remote_reads.cpp -- one request per ps; replies arrive as pieces in any order.
#include "client/remote_reads.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "capstan/cancellation.hpp"
#include "protocol/bfloat16_values.hpp"
#include "protocol/int8_rows.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::client {
namespace {

template <class T>
void append(std::vector<std::byte>& to, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

RemoteReads::RemoteReads(transport::Fabric& fabric) : fabric_(fabric) {
  fabric_.on_message(transport::kRowsPiece, [this](const transport::Message& m) { take_piece(m); });
  fabric_.on_message(transport::kReadFailed, [this](const transport::Message& m) { take_failure(m); });
}

RemoteReads::Id RemoteReads::start(std::vector<Segment> segments, bool consistent) {
  for (const Segment& segment : segments) {
    CAPSTAN_ASSERT(segment.row_bytes > 0);
    segment.peer->require_alive();
  }
  const Id id = next_++;
  Read& read = reads_[id];
  read.segments = std::move(segments);
  for (const Segment& segment : read.segments) {
    read.missing += segment.count * segment.sent_row_bytes();
    read.revivals.push_back(segment.peer->revivals());
  }

  std::vector<bool> asked(read.segments.size());
  for (std::size_t first = 0; first < read.segments.size(); ++first) {
    if (asked[first]) continue;
    transport::Peer& peer = *read.segments[first].peer;
    protocol::ReadRequest request{id, 0, consistent ? 1U : 0U};
    std::vector<std::byte> payload;
    std::vector<std::byte> numbers;
    for (std::size_t i = first; i < read.segments.size(); ++i) {
      const Segment& segment = read.segments[i];
      if (segment.peer != &peer) continue;
      asked[i] = true;
      ++request.segments;
      const protocol::ReadSegment what{.number = static_cast<std::uint32_t>(i),
                                       .variable = segment.variable,
                                       .shard = segment.shard,
                                       .kind = segment.kind(),
                                       .missing = segment.missing,
                                       .values = segment.values,
                                       .first_row = segment.first_row,
                                       .rows = segment.count};
      append(payload, std::span(&what, 1));
      append(numbers, std::span<const std::uint32_t>(segment.rows));
      append(numbers, std::span<const std::int64_t>(segment.keys));
    }
    payload.insert(payload.end(), numbers.begin(), numbers.end());
    peer.send(transport::kReadRows, transport::as_bytes(request), payload);
  }
  return id;
}

const transport::Peer* RemoteReads::Read::dead() const {
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const transport::Peer* const peer = segments[i].peer;
    if (peer->failed() || peer->revivals() != revivals[i]) return peer;
  }
  return nullptr;
}

bool RemoteReads::ready(Id id) const {
  const auto found = reads_.find(id);
  return found == reads_.end() || found->second.ended();
}

bool RemoteReads::in_flight() const {
  return std::any_of(reads_.begin(), reads_.end(), [](const auto& read) { return !read.second.ended(); });
}

void RemoteReads::wait(Id id, std::chrono::milliseconds timeout, const std::string& what) {
  const auto found = reads_.find(id);
  if (found == reads_.end()) return;
  const Read& read = found->second;
  const bool ended = transport::progress_until(fabric_, transport::deadline_in(timeout),
                                               [&] { return read.ended() || cancelled(); });
  const auto ours = reads_.extract(id);  // removes the read, even if this throws
  if (read.missing == 0) return;
  throw_if_cancelled();
  if (read.error) throw *read.error;
  if (ended) throw Error(Code::unavailable, read.dead()->name() + " is dead; it was asked to " + what);
  throw Error(Code::deadline_exceeded, "no reply from " + read.segments.front().peer->name() +
                                           (read.segments.size() > 1 ? " and others to " : " to ") + what +
                                           " within " + std::to_string(timeout.count()) + " ms");
}

void RemoteReads::take_piece(const transport::Message& message) {
  const auto header = transport::read_header<protocol::PieceHeader>(message);
  if (!header) return;
  const auto found = reads_.find(header->id);
  if (found == reads_.end()) return;  // cancelled
  Read& read = found->second;
  if (header->segment >= read.segments.size()) return;
  const Segment& segment = read.segments[header->segment];
  const transport::Bytes piece = message.payload;
  // A piece of a dense segment may start at any byte, or element of bfloat16; a piece of any other segment
  // consists of complete rows.
  const bool dense = segment.kind() == protocol::ReadKind::dense;
  const std::uint64_t element = segment.values == protocol::SentValues::bfloat16 ? sizeof(bfloat16) : 1;
  const std::uint64_t unit = dense ? element : segment.sent_row_bytes();
  const std::uint64_t units = segment.count * segment.sent_row_bytes() / unit;
  const bool fits = header->begin <= units && piece.size() / unit <= units - header->begin;
  if (!fits || piece.size() % unit != 0 || piece.size() > read.missing) {
    log::error("dropped {} bytes from rank {}: they do not belong to a read in flight", piece.size(),
               message.from);
    return;
  }
  store(segment, header->begin, piece);
  read.missing -= piece.size();
}

/// Copies a piece, which starts with unit `begin` of the segment, to the memory of the reader.
void RemoteReads::store(const Segment& segment, std::uint64_t begin, transport::Bytes piece) {
  if (piece.empty()) return;
  const bool is_bfloat16 = segment.values == protocol::SentValues::bfloat16;
  const auto copy = [&](transport::Bytes from, std::byte* to) {
    if (is_bfloat16) {
      protocol::from_bfloat16(
          {reinterpret_cast<const bfloat16*>(from.data()), from.size() / sizeof(bfloat16)},
          reinterpret_cast<float*>(to));
    } else if (segment.values == protocol::SentValues::int8) {
      protocol::from_int8_rows(from, segment.row_bytes / sizeof(float), reinterpret_cast<float*>(to));
    } else {
      std::memcpy(to, from.data(), from.size());
    }
  };
  if (segment.kind() == protocol::ReadKind::dense) {
    return copy(piece, segment.out + begin * (is_bfloat16 ? sizeof(float) : 1));
  }
  if (segment.order.empty()) return copy(piece, segment.out + begin * segment.row_bytes);
  const std::uint64_t sent = segment.sent_row_bytes();
  const std::uint32_t* order = segment.order.data() + begin;
  for (std::uint64_t at = 0; at < piece.size(); at += sent, ++order) {
    copy(piece.subspan(at, sent), segment.out + *order * segment.row_bytes);
  }
}

void RemoteReads::take_failure(const transport::Message& message) {
  const auto failure = transport::read_header<protocol::ReadFailure>(message);
  if (!failure) return;
  const auto found = reads_.find(failure->id);
  if (found == reads_.end()) return;
  found->second.error.emplace(
      static_cast<Code>(failure->code),
      std::string(reinterpret_cast<const char*>(message.payload.data()), message.payload.size()));
}

}  // namespace capstan::client
