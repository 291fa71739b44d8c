// row_sender.cpp -- parses read requests, gathers rows and sends them in pieces.
#include "ps/server/row_sender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "protocol/bfloat16_values.hpp"
#include "protocol/int8_rows.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {

using transport::kPieceBytes;

RowSender::~RowSender() {
  for (auto& piece : pieces_) {
    if (piece->in_flight != 0)
      (void)piece.release();  // leaked: the transport still reads it, and the send cannot be cancelled
  }
}

void RowSender::receive(const transport::Message& message) {
  const auto request = transport::read_header<protocol::ReadRequest>(message);
  if (!request) return;
  try {
    Read read = parse(message, *request);
    if (!read.segments.empty()) reads_.push_back(std::move(read));
  } catch (const Error& error) {
    send_failure(message.from, request->id, error);
  }
}

void RowSender::send_failure(int client, std::uint64_t request_id, const Error& error) {
  const protocol::ReadFailure failure{request_id, static_cast<std::uint64_t>(error.code())};
  const std::string_view text = error.what();
  find_peer_(client).send(transport::kReadFailed, transport::as_bytes(failure),
                          std::as_bytes(std::span(text)));
}

RowSender::Read RowSender::parse(const transport::Message& message,
                                 const protocol::ReadRequest& request) const {
  Read read;
  read.request = request;
  read.client = message.from;
  transport::Bytes rest = message.payload;
  const auto take = [&](void* to, std::uint64_t bytes) {
    if (bytes > rest.size()) {
      throw Error(Code::invalid_argument,
                  fmt::format("malformed read request of rank {}: {} bytes left, expected {}", message.from,
                              rest.size(), bytes));
    }
    if (bytes != 0) std::memcpy(to, rest.data(), bytes);
    rest = rest.subspan(bytes);
  };
  if (request.segments > rest.size() / sizeof(protocol::ReadSegment)) {
    throw Error(Code::invalid_argument,
                fmt::format("malformed read request of rank {}: {} bytes, too few for {} "
                            "segments",
                            message.from, rest.size(), request.segments));
  }
  read.segments.resize(request.segments);
  for (Segment& segment : read.segments) take(&segment.requested, sizeof segment.requested);
  for (Segment& segment : read.segments) {
    const protocol::ReadSegment& requested = segment.requested;
    segment.from = store_.view(requested.variable, requested.shard);
    bool valid = requested.rows != 0 && segment.from.row_bytes != 0;
    if (segment.narrows()) {
      valid &= requested.values == protocol::SentValues::bfloat16 ||
               requested.values == protocol::SentValues::int8;
      valid &= requested.values != protocol::SentValues::int8 || requested.kind != protocol::ReadKind::dense;
      valid &= !segment.on_gpu() && segment.from.shard->description().dtype == DType::float32;
    }
    const auto take_all = [&](auto& numbers) {
      const std::uint64_t size = sizeof numbers[0];
      if (requested.rows > rest.size() / size) valid = false;
      numbers.resize(valid ? requested.rows : 0);
      take(numbers.data(), numbers.size() * size);
    };
    switch (requested.kind) {
      case protocol::ReadKind::dense:
        valid &= requested.first_row <= segment.from.rows &&
                 requested.rows <= segment.from.rows - requested.first_row;
        break;
      case protocol::ReadKind::sparse:
        take_all(segment.rows);
        for (const std::uint32_t row : segment.rows) valid &= row < segment.from.rows;
        break;
      case protocol::ReadKind::keyed:
        valid &= segment.from.shard->description().table;
        take_all(segment.keys);
        break;
      default:
        valid = false;
    }
    if (!valid) {
      throw Error(
          Code::out_of_range,
          fmt::format("cannot read variable {} shard {}: found a malformed request, no rows or rows out of "
                      "range, expected rows below {}",
                      requested.variable, requested.shard, segment.from.rows));
    }
  }
  return read;
}

RowSender::Piece* RowSender::free_piece() {
  for (const auto& piece : pieces_) {
    if (piece->in_flight == 0) return piece.get();
  }
  if (pieces_.size() == kPieces) return nullptr;
  return pieces_.emplace_back(std::make_unique<Piece>()).get();
}

bool RowSender::advance() {
  in_flight_ = 0;
  for (const auto& piece : pieces_) in_flight_ += piece->in_flight;
  bool any = false;
  for (std::size_t turns = reads_.size(); turns != 0; --turns) {
    Read read = std::move(reads_.front());
    reads_.pop_front();
    transport::Peer& peer = find_peer_(read.client);
    if (peer.failed()) {
      stop_waiting(read);
      continue;
    }
    constexpr int kPiecesPerTurn = 4;
    try {
      for (int i = 0; i < kPiecesPerTurn && read.at < read.segments.size() && send_piece(read, peer); ++i) {
        any = true;
      }
    } catch (const Error& error) {
      // resource_exhausted: too little memory to copy rows from a GPU. not_found: the variable was dropped
      // after the request arrived.
      if (error.code() != Code::resource_exhausted && error.code() != Code::not_found) throw;
      stop_waiting(read);
      send_failure(read.client, read.request.id, error);
      continue;
    }
    if (read.at < read.segments.size()) reads_.push_back(std::move(read));
  }
  return any;
}

bool RowSender::take_snapshot(Read& read, const Segment& segment) {
  const protocol::ReadSegment& requested = segment.requested;
  if (!store_.is_consistent(requested.variable, requested.shard)) {
    if (!std::exchange(read.waiting, true)) store_.add_waiting_read(requested.variable, requested.shard, 1);
    return false;
  }
  stop_waiting(read);
  read.staged = std::make_shared<StagedRows>();
  read.staged->end = segment.units();
  read.staged->bytes.resize(requested.rows * segment.from.row_bytes);
  gather(segment, 0, read.staged->end, read.staged->bytes.data());
  return true;
}

/// `begin` and `end` are units of the segment.
void RowSender::gather(const Segment& segment, std::uint64_t begin, std::uint64_t end, std::byte* out) {
  const std::uint64_t count = end - begin;
  switch (segment.requested.kind) {
    case protocol::ReadKind::dense:
      return store_.gather(segment.from,
                           segment.requested.first_row * segment.from.row_bytes + begin * segment.unit(),
                           {out, count * segment.unit()});
    case protocol::ReadKind::sparse:
      return store_.gather(segment.from, std::span(segment.rows).subspan(begin, count), out);
    case protocol::ReadKind::keyed:
      return store_.gather_keys(segment.from, std::span(segment.keys).subspan(begin, count),
                                segment.requested.missing, out);
  }
}

/// Converts values to the form in which they are sent. REQUIRES: complete rows, unless the segment is dense.
void RowSender::narrow(const Segment& segment, std::span<const float> values, std::byte* out) {
  if (segment.requested.values == protocol::SentValues::int8) {
    protocol::to_int8_rows(values, segment.from.row_bytes / sizeof(float), out);
  } else {
    protocol::to_bfloat16(values, reinterpret_cast<bfloat16*>(out));
  }
}

std::shared_ptr<RowSender::StagedRows> RowSender::free_staged() {
  for (const auto& piece : pieces_) {
    if (piece->in_flight == 0) piece->staged.reset();
  }
  for (const auto& staged : staged_) {
    if (staged.use_count() == 1) return staged;
  }
  return staged_.emplace_back(std::make_shared<StagedRows>());
}

/// Copies up to 16 pieces at once: a transfer from a GPU has a fixed cost, equal to that of many rows.
void RowSender::stage_gpu_rows(Read& read, const Segment& segment) {
  constexpr std::uint64_t kBytes = 16 * kPieceBytes;
  const std::uint64_t unit = segment.unit();
  const std::uint64_t left = segment.units() - read.begin;
  const std::uint64_t count = std::min(left, std::max<std::uint64_t>(1, kBytes / unit));
  read.staged = free_staged();
  StagedRows& staged = *read.staged;
  if (staged.pinned.size() < count * unit) {
    staged.pinned = {};
    staged.pinned = gpu::PinnedMemory(std::max(kBytes, count * unit));
  }
  staged.begin = read.begin;
  staged.end = read.begin + count;
  gather(segment, staged.begin, staged.end, staged.pinned.data());
}

void RowSender::stop_waiting(Read& read) {
  if (!std::exchange(read.waiting, false)) return;
  const protocol::ReadSegment& requested = read.segments[read.at].requested;
  store_.add_waiting_read(requested.variable, requested.shard, -1);
}

bool RowSender::send_piece(Read& read, transport::Peer& peer) {
  const Segment& segment = read.segments[read.at];
  if (read.request.consistent != 0 && read.staged == nullptr && !take_snapshot(read, segment)) return false;
  Piece* piece = free_piece();
  if (piece == nullptr) return false;
  piece->staged.reset();
  if (segment.on_gpu() && read.staged == nullptr) stage_gpu_rows(read, segment);

  const std::uint64_t unit = segment.unit();
  const std::uint64_t end = segment.units();
  const std::uint64_t most = std::max<std::uint64_t>(1, kPieceBytes / segment.sent_unit());
  const std::uint64_t count = std::min(most, (read.staged ? read.staged->end : end) - read.begin);
  const protocol::PieceHeader header{read.request.id, read.begin, segment.requested.number, 0};
  const auto reserved = [](auto& memory, std::uint64_t size) {
    if (memory.size() < size) memory.resize(size);
    return reinterpret_cast<std::byte*>(memory.data());
  };
  const std::byte* data = nullptr;
  if (read.staged != nullptr) {
    if (!segment.narrows()) piece->staged = read.staged;
    data = read.staged->data() + (read.begin - read.staged->begin) * unit;
  } else if (segment.requested.kind != protocol::ReadKind::dense || segment.from.values == nullptr) {
    std::byte* const rows = segment.narrows() ? reserved(floats_, count * unit / sizeof(float))
                                              : reserved(piece->bytes, count * unit);
    gather(segment, read.begin, read.begin + count, rows);
    data = rows;
  } else {
    data = segment.from.values + segment.requested.first_row * segment.from.row_bytes + read.begin * unit;
  }
  if (segment.narrows()) {
    std::byte* const sent = reserved(piece->bytes, count * segment.sent_unit());
    narrow(segment, {reinterpret_cast<const float*>(data), count * unit / sizeof(float)}, sent);
    data = sent;
  }
  peer.send_in_place(transport::kRowsPiece, transport::as_bytes(header), {data, count * segment.sent_unit()},
                     piece->in_flight);
  in_flight_ += piece->in_flight;
  read.begin += count;
  if (read.staged != nullptr && read.begin == read.staged->end) read.staged.reset();
  if (read.begin == end) {
    store_.count_sent(segment.requested.variable, segment.requested.shard, segment.requested.rows);
    ++read.at;
    read.begin = 0;
  }
  return true;
}

void RowSender::drop_reads_of(int rank) {
  for (auto read = reads_.begin(); read != reads_.end();) {
    if (read->client == rank) {
      stop_waiting(*read);
      read = reads_.erase(read);
    } else {
      ++read;
    }
  }
}

}  // namespace capstan::ps
