// table_client.cpp -- finds and gathers rows, and repeats this for keys whose sub-index changed meanwhile.
#include "client/table_client.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/fence.hpp"
#include "capstan/serialize.hpp"
#include "client/mapped_read.hpp"
#include "protocol/key_search.hpp"
#include "protocol/row_copy.hpp"
#include "transport/bytes.hpp"

namespace capstan::client {
namespace {

/// Number of attempts to copy rows while their sub-indexes change; after that, the ps is asked for the rows.
constexpr int kCopies = 8;

}  // namespace

void TableClient::start(const Table& table, MissingKeys missing, Keys keys, std::byte* out, ReadMode mode,
                        std::vector<RemoteReads::Segment>& remote) {
  const Route& route = routes_.of(table);
  by_shard_.sort(route.shards.size(), keys);
  for (std::size_t s = 0; s < route.shards.size(); ++s) {
    const ShardRoute& shard = route.shards[s];
    const Part part{by_shard_.keys(s), by_shard_.order(s)};
    if (part.keys.empty()) continue;
    if (shard.values != nullptr) {
      const protocol::TableReader reader(shard.values - route.table->values(), *route.table);
      const bool copied = read_mapped(shard, mode, [&] { copy_rows(table, missing, reader, part, out); });
      if (copied) {
        if (!of_ps_.keys.empty())
          remote.push_back(segment(table, missing, shard, {of_ps_.keys, of_ps_.order}, out));
        continue;
      }
    }
    remote.push_back(segment(table, missing, shard, part, out));
  }
}

RemoteReads::Segment TableClient::segment(const Table& table, MissingKeys missing, const ShardRoute& shard,
                                          const Part& part, std::byte* out) const {
  shard.connection->require_alive();
  return {.peer = &shard.connection->peer(),
          .variable = table.id,
          .shard = shard.number,
          .row_bytes = table.row_bytes(),
          .keys = {part.keys.begin(), part.keys.end()},
          .missing = missing,
          .order = {part.order.begin(), part.order.end()},
          .count = part.keys.size(),
          .out = out,
          .values = shard.sent_by_lookups(table)};
}

/// Sets of_ps_ to the keys whose rows the ps has to send.
void TableClient::copy_rows(const Table& table, MissingKeys missing, const protocol::TableReader& reader,
                            Part part, std::byte* out) {
  of_ps_.clear();
  for (int copies = 1;; ++copies) {
    epochs_.begin(reader);
    rows_.resize(part.keys.size());
    // One loop for both would be slower: searches and copies compete for the misses that a core can have in
    // flight (docs/performance.md#dynamic-tables).
    protocol::find_keys(epochs_.index(), part.keys, rows_);
    protocol::gather_rows(reader.values(), table.row_bytes(), rows_, part.order, out);
    thread_fence(std::memory_order_acquire);
    changed_.clear();
    const bool changed = !epochs_.check(reader);
    if (changed) {
      for (std::size_t i = 0; i < part.keys.size(); ++i) {
        if (!epochs_.valid(protocol::hash_of(part.keys[i]))) changed_.add(part, i);
      }
    }
    handle_missing(table, missing, part, out);
    if (changed_.keys.empty()) return;
    if (copies == kCopies) break;
    std::swap(again_, changed_);
    part = {again_.keys, again_.order};
  }
  of_ps_.keys.insert(of_ps_.keys.end(), changed_.keys.begin(), changed_.keys.end());
  of_ps_.order.insert(of_ps_.order.end(), changed_.order.begin(), changed_.order.end());
}

void TableClient::handle_missing(const Table& table, MissingKeys missing, const Part& part, std::byte* out) {
  const std::uint64_t row_bytes = table.row_bytes();
  std::uint64_t not_found = 0, of_ps = 0;
  for (auto row = rows_.begin(); (row = std::find(row, rows_.end(), protocol::kDefaultRow)) != rows_.end();
       ++row) {
    const auto i = static_cast<std::size_t>(row - rows_.begin());
    const std::int64_t key = part.keys[i];
    if (!epochs_.valid(protocol::hash_of(key))) continue;  // it is copied again
    ++not_found;
    switch (missing) {
      case MissingKeys::zeros:
        std::memset(out + part.position(i) * row_bytes, 0, row_bytes);
        break;
      case MissingKeys::default_row:
        break;
      case MissingKeys::initial:
        of_ps_.add(part, i);
        ++of_ps;
        break;
      case MissingKeys::error:
        throw protocol::no_such_key(key, table.name);
    }
  }
  // The ps counts the keys whose rows it sends.
  runtime_.traffic().keys.count(part.keys.size() - changed_.keys.size() - not_found, not_found - of_ps);
}

void TableClient::push(const Table& table, protocol::RowOp op, Keys keys, const std::byte* values,
                       bool more) {
  if (keys.empty()) return;
  const Route& route = routes_.of(table);
  by_shard_.sort(route.shards.size(), keys);
  for (std::size_t s = 0; s < route.shards.size(); ++s) {
    const Keys of_shard = by_shard_.keys(s);
    const PushRows push{.variable = table.id,
                        .shard = static_cast<std::uint32_t>(s),
                        .row_bytes = table.row_bytes(),
                        .keys = of_shard,
                        .order = by_shard_.order(s),
                        .count = of_shard.size(),
                        .gradient = values,
                        .op = op,
                        .bfloat16 = table.communication.bfloat16 && op == protocol::RowOp::gradient,
                        .stochastic_rounding = table.communication.stochastic_rounding};
    route.shards[s].connection->push(push, numbering_, more);
  }
}

void TableClient::set_default_row(const Table& table, const std::byte* values) {
  numbering_.next_push();
  const std::array<std::uint32_t, 1> rows{protocol::kDefaultRow};
  for (const ShardRoute& shard : routes_.of(table).shards) {
    const PushRows push{.variable = table.id,
                        .shard = shard.number,
                        .row_bytes = table.row_bytes(),
                        .rows = rows,
                        .count = 1,
                        .gradient = values,
                        .op = protocol::RowOp::set};
    shard.connection->push(push, numbering_);
  }
  flush(table);
}

void TableClient::flush(const Table& table) {
  for (const ShardRoute& shard : routes_.of(table).shards) shard.connection->flush();
}

std::vector<std::uint8_t> TableClient::contains(const Table& table, Keys keys) {
  std::vector<std::uint8_t> found(keys.size());
  connections_.retry([&] {
    const std::size_t shards = routes_.of(table).shards.size();
    by_shard_.sort(shards, keys);
    std::vector<transport::RpcClient::Id> calls;
    for (std::uint32_t s = 0; s < shards; ++s) {
      const Keys of_shard = by_shard_.keys(s);
      const auto request = to_bytes(protocol::FindKeys{table.id, s, {of_shard.begin(), of_shard.end()}});
      transport::Peer& peer = routes_.of(table).shards[s].connection->peer();
      calls.push_back(connections_.rpc().start(peer, transport::kFindKeys, request));
    }
    for (std::uint32_t s = 0; s < shards; ++s) {
      const auto reply = from_bytes<std::vector<std::uint8_t>>(
          connections_.rpc().wait(calls[s], runtime_.wait_timeout(), "find keys of a table"));
      const Part part{by_shard_.keys(s), by_shard_.order(s)};
      for (std::size_t i = 0; i < part.keys.size(); ++i) found[part.position(i)] = reply.at(i);
    }
  });
  return found;
}

std::vector<protocol::TableStatistics> TableClient::statistics(const Table& table) {
  std::vector<protocol::TableStatistics> all;
  connections_.retry([&] {
    all.clear();
    for (const ShardRoute& shard : routes_.of(table).shards) {
      const protocol::ShardOfTable request{table.id, shard.number};
      const auto call = connections_.rpc().start(shard.connection->peer(), transport::kTableStatistics,
                                                 transport::as_bytes(request));
      all.push_back(from_bytes<protocol::TableStatistics>(
          connections_.rpc().wait(call, runtime_.wait_timeout(), "report on a table")));
    }
  });
  return all;
}

protocol::ListedKeys TableClient::list(const Table& table, std::uint32_t shard, std::uint64_t first_row,
                                       std::uint64_t rows) {
  protocol::ListedKeys keys;
  connections_.retry([&] {
    const auto call =
        connections_.rpc().start(routes_.of(table).shards.at(shard).connection->peer(), transport::kListKeys,
                                 to_bytes(protocol::ListKeys{table.id, shard, first_row, rows}));
    keys = from_bytes<protocol::ListedKeys>(
        connections_.rpc().wait(call, runtime_.wait_timeout(), "list keys of a table"));
  });
  return keys;
}

}  // namespace capstan::client
