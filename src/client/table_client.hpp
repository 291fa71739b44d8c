// table_client.hpp -- reads and changes rows of dynamic tables by key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "capstan/variable.hpp"
#include "client/keys_by_shard.hpp"
#include "client/ps_connections.hpp"
#include "client/push_numbering.hpp"
#include "client/remote_reads.hpp"
#include "client/routes.hpp"
#include "cluster/runtime.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/table_reader.hpp"

namespace capstan::client {

/// Part of a Client. Finds keys itself in shards that this process maps; for other shards, their ps does.
/// Used by the thread that owns the data fabric. Throws Error: not_found, unavailable, deadline_exceeded.
class TableClient {
 public:
  using Table = protocol::VariableDescriptor;
  using Keys = std::span<const std::int64_t>;

  /// All arguments must outlive this object.
  TableClient(cluster::Runtime& runtime, PsConnections& connections, Routes& routes, PushNumbering& numbering)
      : runtime_(runtime), connections_(connections), routes_(routes), numbering_(numbering) {}

  /// Copies the row of each key to `out`, in the order of the call. Adds segments to `remote` for the rows
  /// that a ps has to send; with MissingKeys::initial, these include all missing keys.
  void start(const Table& table, MissingKeys missing, Keys keys, std::byte* out, ReadMode mode,
             std::vector<RemoteReads::Segment>& remote);

  /// Sends `op` with row i of `values` for keys[i]. See PushChannel::push.
  void push(const Table& table, protocol::RowOp op, Keys keys, const std::byte* values, bool more);
  /// Sets the default row of every shard, and waits until it is set.
  void set_default_row(const Table& table, const std::byte* values);
  /// Waits until all pushes to the table have been applied.
  void flush(const Table& table);

  /// Returns 1 for each key that exists, 0 for the others.
  std::vector<std::uint8_t> contains(const Table& table, Keys keys);
  /// Returns the statistics of each shard.
  std::vector<protocol::TableStatistics> statistics(const Table& table);
  /// Returns the keys of rows [first_row, first_row + rows) of a shard.
  protocol::ListedKeys list(const Table& table, std::uint32_t shard, std::uint64_t first_row,
                            std::uint64_t rows);

 private:
  /// Keys of one shard. The row of keys[i] goes to row order[i] of `out`, or to row i if `order` is empty.
  struct Part {
    Keys keys;
    std::span<const std::uint32_t> order;
    std::uint32_t position(std::size_t i) const noexcept {
      return order.empty() ? static_cast<std::uint32_t>(i) : order[i];
    }
  };
  /// Like Part, but owns its arrays.
  struct Keyed {
    std::vector<std::int64_t> keys;
    std::vector<std::uint32_t> order;
    void clear() {
      keys.clear();
      order.clear();
    }
    void add(const Part& part, std::size_t i) {
      keys.push_back(part.keys[i]);
      order.push_back(part.position(i));
    }
  };

  void copy_rows(const Table& table, MissingKeys missing, const protocol::TableReader& reader, Part part,
                 std::byte* out);
  void handle_missing(const Table& table, MissingKeys missing, const Part& part, std::byte* out);
  RemoteReads::Segment segment(const Table& table, MissingKeys missing, const ShardRoute& shard,
                               const Part& part, std::byte* out) const;

  cluster::Runtime& runtime_;
  PsConnections& connections_;
  Routes& routes_;
  PushNumbering& numbering_;
  KeysByShard by_shard_;
  // Of the copy in progress:
  protocol::TableReader::Epochs epochs_;
  std::vector<std::uint32_t> rows_;  // of each key
  Keyed changed_;                    // keys whose rows may have been replaced while they were copied
  Keyed again_;                      // keys that are copied again
  Keyed of_ps_;                      // keys whose rows the ps has to send
};

}  // namespace capstan::client
