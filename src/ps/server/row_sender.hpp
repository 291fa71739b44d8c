// row_sender.hpp -- reads that the ps serves: rows go out in pieces, a bounded number of them at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "capstan/error.hpp"
#include "gpu/gpu.hpp"
#include "protocol/ps_messages.hpp"
#include "ps/shard/store.hpp"
#include "transport/fabric.hpp"

namespace capstan::ps {

/// For clients that do not map the ps's memory, and for consistent reads whose writers never pause. Gathering
/// a piece, sending it and its scattering at the client overlap. Several reads take turns, piece by piece.
class RowSender {
 public:
  using FindPeer = std::function<transport::Peer&(int rank)>;

  RowSender(Store& store, FindPeer find_peer) : store_(store), find_peer_(std::move(find_peer)) {}
  ~RowSender();
  RowSender(const RowSender&) = delete;
  RowSender& operator=(const RowSender&) = delete;

  /// A kReadRows message; runs inside progress().
  void receive(const transport::Message& message);
  /// Sends what may be sent now; true when there was something.
  bool advance();
  /// Something is to be sent, or its sending has not been confirmed.
  bool busy() const noexcept { return !reads_.empty() || in_flight_ != 0; }
  /// The rank has died.
  void close(int rank);

 private:
  struct Segment {
    protocol::ReadSegment what;
    Store::RowsView from;
    std::vector<std::uint32_t> rows;  // of a sparse one
  };
  /// A part of a segment that is copied at once and sent from there: the whole of it for a consistent read,
  /// or as much as is copied from a GPU at a time.
  struct Stretch {
    std::uint64_t begin = 0;  // rows (sparse) or bytes (dense) of the segment
    std::uint64_t end = 0;
    std::vector<std::byte> bytes;
    gpu::PinnedMemory pinned;  // instead, for rows that are not in host memory
    const std::byte* data() const noexcept { return pinned.size() != 0 ? pinned.data() : bytes.data(); }
  };
  struct Read {
    protocol::ReadRequest request;
    int client = -1;
    std::vector<Segment> segments;
    std::size_t at = 0;                // segment
    std::uint64_t begin = 0;           // row (sparse) or byte (dense) that comes next
    bool waiting = false;              // for its segment's shard to get whole
    std::shared_ptr<Stretch> stretch;  // null: none, or all of it is sent
  };
  /// A piece on its way: the memory it is sent from.
  struct Piece {
    std::uint32_t in_flight = 0;
    std::vector<std::byte> bytes;
    std::shared_ptr<Stretch> stretch;
  };
  /// Pieces on their way, all reads together: some 4 MB, more than a connection takes at once.
  static constexpr std::uint32_t kPieces = 64;

  Read parse(const transport::Message& message, const protocol::ReadRequest& request) const;
  Piece* free_piece();
  /// Sends one piece; false when the read has to wait.
  bool send_piece(Read& read, transport::Peer& peer);
  bool take_snapshot(Read& read, const Segment& segment);
  void copy_from_shard(Read& read, const Segment& segment);
  /// One that nothing is sent from.
  std::shared_ptr<Stretch> free_stretch();
  void gather(const Segment& segment, std::uint64_t begin, std::uint64_t end, std::byte* out);
  void stop_waiting(Read& read);
  void refuse(int client, std::uint64_t read, const Error& error);

  Store& store_;
  FindPeer find_peer_;
  std::deque<Read> reads_;
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<std::shared_ptr<Stretch>> stretches_;  // with pinned memory
  std::uint32_t in_flight_ = 0;                      // pieces, as last counted
};

}  // namespace capstan::ps
