// row_sender.hpp -- reads that the ps serves: rows go out in pieces, a bounded number of them at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "shard/protocol.hpp"
#include "store/store.hpp"
#include "transport/fabric.hpp"

namespace capstan::store {

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
    shard::ReadSegment what;
    Store::RowsView from;
    std::vector<std::uint32_t> rows;  // of a sparse one
  };
  struct Read {
    shard::ReadRequest request;
    int client = -1;
    std::vector<Segment> segments;
    std::size_t at = 0;                                // segment
    std::uint64_t begin = 0;                           // row (sparse) or byte (dense) that comes next
    bool waiting = false;                              // for its segment's shard to get whole
    std::shared_ptr<std::vector<std::byte>> snapshot;  // of the whole segment, of a consistent read
  };
  /// A piece on its way: the memory it is sent from.
  struct Piece {
    std::uint32_t in_flight = 0;
    std::vector<std::byte> bytes;
    std::shared_ptr<std::vector<std::byte>> snapshot;
  };
  /// Pieces on their way, all reads together: some 4 MB, more than a connection takes at once.
  static constexpr std::uint32_t kPieces = 64;

  Read parse(const transport::Message& message, const shard::ReadRequest& request) const;
  Piece* free_piece();
  /// Sends one piece; false when the read has to wait.
  bool send_piece(Read& read, transport::Peer& peer);
  bool take_snapshot(Read& read, const Segment& segment);
  void stop_waiting(Read& read);

  Store& store_;
  FindPeer find_peer_;
  std::deque<Read> reads_;
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::uint32_t in_flight_ = 0;  // pieces, as last counted
};

}  // namespace capstan::store
