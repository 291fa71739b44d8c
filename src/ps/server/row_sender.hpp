// row_sender.hpp -- serves reads by message: sends rows in pieces, with a bounded number in flight.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "capstan/error.hpp"
#include "gpu/gpu.hpp"
#include "protocol/ps_messages.hpp"
#include "ps/shard/store.hpp"
#include "transport/fabric.hpp"

namespace capstan::ps {

/// Serves clients that do not map the memory of the ps, and consistent reads that found no interval without
/// writes. Gathering a piece, sending it and scattering it at the client overlap. Reads take turns, a few
/// pieces each. Used by the ps's thread only.
class RowSender {
 public:
  using FindPeer = std::function<transport::Peer&(int rank)>;

  RowSender(Store& store, FindPeer find_peer) : store_(store), find_peer_(std::move(find_peer)) {}
  ~RowSender();
  RowSender(const RowSender&) = delete;
  RowSender& operator=(const RowSender&) = delete;

  /// Handles a kReadRows message; called inside progress().
  void receive(const transport::Message& message);
  /// Sends as many pieces as the limit allows. Returns true if any was sent.
  bool advance();
  /// Returns true while pieces are pending or in flight.
  bool busy() const noexcept { return !reads_.empty() || in_flight_ != 0; }
  /// Drops the reads of a dead rank.
  void drop_reads_of(int rank);

 private:
  struct Segment {
    protocol::ReadSegment requested;
    Store::RowsView from;
    std::vector<std::uint32_t> rows;  // of a sparse segment
    std::vector<std::int64_t> keys;   // of a keyed segment

    bool on_gpu() const noexcept { return from.shard->description().memory == ShardMemory::device; }
    bool narrows() const noexcept { return requested.values != protocol::SentValues::stored; }
    /// Size of the smallest part of a segment that a piece may hold: a row, or one byte of consecutive rows
    /// (one element if they are sent as bfloat16).
    std::uint64_t unit() const noexcept {
      if (requested.kind != protocol::ReadKind::dense) return from.row_bytes;
      return narrows() ? sizeof(float) : 1;
    }
    std::uint64_t sent_unit() const noexcept { return protocol::sent_bytes(requested.values, unit()); }
    std::uint64_t units() const noexcept { return requested.rows * from.row_bytes / unit(); }
  };
  /// Copied rows from which pieces are sent: the complete segment for a consistent read, or the rows of one
  /// transfer from a GPU.
  struct StagedRows {
    std::uint64_t begin = 0;  // units of the segment
    std::uint64_t end = 0;
    std::vector<std::byte> bytes;
    gpu::PinnedMemory pinned;  // replaces `bytes` for rows on a GPU
    const std::byte* data() const noexcept { return pinned.size() != 0 ? pinned.data() : bytes.data(); }
  };
  struct Read {
    protocol::ReadRequest request;
    int client = -1;
    std::vector<Segment> segments;
    std::size_t at = 0;                  // current segment
    std::uint64_t begin = 0;             // next unit
    bool waiting = false;                // waits for the current segment's shard to become consistent
    std::shared_ptr<StagedRows> staged;  // null: no copy, or all of it was sent
  };
  /// Memory of a piece in flight.
  struct Piece {
    std::uint32_t in_flight = 0;
    std::vector<std::byte> bytes;
    std::shared_ptr<StagedRows> staged;
  };
  /// Maximum number of pieces in flight over all reads: about 4 MB, more than a connection accepts at once.
  static constexpr std::uint32_t kPieces = 64;

  Read parse(const transport::Message& message, const protocol::ReadRequest& request) const;
  Piece* free_piece();
  /// Sends one piece. Returns false if the read has to wait for a free piece or a consistent shard.
  bool send_piece(Read& read, transport::Peer& peer);
  bool take_snapshot(Read& read, const Segment& segment);
  void stage_gpu_rows(Read& read, const Segment& segment);
  /// Returns an object whose rows no piece in flight uses any more, so that its memory is reused; a new
  /// object if there is none.
  std::shared_ptr<StagedRows> free_staged();
  void gather(const Segment& segment, std::uint64_t begin, std::uint64_t end, std::byte* out);
  static void narrow(const Segment& segment, std::span<const float> values, std::byte* out);
  void stop_waiting(Read& read);
  void send_failure(int client, std::uint64_t request_id, const Error& error);

  Store& store_;
  FindPeer find_peer_;
  std::deque<Read> reads_;
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<std::shared_ptr<StagedRows>> staged_;  // objects with pinned memory, reused
  std::vector<float> floats_;                        // of a piece that is sent in another form
  std::uint32_t in_flight_ = 0;                      // pieces, as last counted
};

}  // namespace capstan::ps
