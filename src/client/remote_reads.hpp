// remote_reads.hpp -- reads by messages, which a ps serves.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "protocol/ps_messages.hpp"
#include "transport/fabric.hpp"

namespace capstan::client {

/// Reads in flight. Each read sends one message to each ps that it needs. Used by the thread that owns the
/// fabric.
class RemoteReads {
 public:
  using Id = std::uint64_t;  // 0 is no read

  /// Rows of one shard. Sparse: `rows` are numbers within the shard; keyed: `keys` are keys of a dynamic
  /// table. Row i goes to position order[i] of `out`, or to position i if `order` is empty. Dense (both are
  /// empty): `count` rows starting at first_row. The ps sends them as `values`.
  struct Segment {
    transport::Peer* peer = nullptr;
    std::uint32_t variable = 0;
    std::uint32_t shard = 0;
    std::uint64_t row_bytes = 0;
    std::vector<std::uint32_t> rows = {};
    std::vector<std::int64_t> keys = {};
    MissingKeys missing{};  // keyed only
    std::vector<std::uint32_t> order = {};
    std::uint64_t first_row = 0;
    std::uint64_t count = 0;
    std::byte* out = nullptr;
    protocol::SentValues values{};

    protocol::ReadKind kind() const noexcept {
      if (!keys.empty()) return protocol::ReadKind::keyed;
      return rows.empty() ? protocol::ReadKind::dense : protocol::ReadKind::sparse;
    }
    /// Bytes of a row in a message.
    std::uint64_t sent_row_bytes() const noexcept { return protocol::sent_bytes(values, row_bytes); }
  };

  explicit RemoteReads(transport::Fabric& fabric);

  /// Sends the requests. `out` of every segment must remain valid until `wait` or `cancel`. Throws
  /// Error(unavailable).
  Id start(std::vector<Segment> segments, bool consistent);
  /// Returns true if `wait` would not block, because all rows have arrived or the read has failed.
  bool ready(Id id) const;
  /// Blocks until all rows have arrived. Throws the error in the reply of a ps, unavailable, or
  /// deadline_exceeded; the read is cancelled then.
  void wait(Id id, std::chrono::milliseconds timeout, const std::string& what);
  /// Drops rows that arrive later.
  void cancel(Id id) noexcept { reads_.erase(id); }
  /// Returns true if `wait` would block for some read.
  bool in_flight() const;

 private:
  struct Read {
    std::vector<Segment> segments;
    std::vector<std::uint32_t> revivals;  // of each segment's peer at the time of the request
    std::uint64_t missing = 0;            // bytes
    std::optional<Error> error;           // in the reply of a ps

    /// Returns a dead ps, or nullptr.
    const transport::Peer* dead() const;
    bool ended() const { return missing == 0 || error.has_value() || dead() != nullptr; }
  };
  void take_piece(const transport::Message& message);
  static void store(const Segment& segment, std::uint64_t begin, transport::Bytes piece);
  void take_failure(const transport::Message& message);

  transport::Fabric& fabric_;
  Id next_ = 1;
  std::map<Id, Read> reads_;
};

}  // namespace capstan::client
