// client.cpp -- for each shard of a call, loads from mapped memory, uses RMA, sends messages, or pushes.
#include "client/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capstan/cancellation.hpp"
#include "client/checks.hpp"
#include "client/mapped_read.hpp"
#include "gpu/gpu.hpp"
#include "protocol/row_copy.hpp"

namespace capstan::client {
namespace {

/// Number of rows for Combiner: keys of a table may be any number.
constexpr std::uint64_t kAnyKey = ~std::uint64_t{0};

}  // namespace

Client::Client(std::shared_ptr<cluster::Runtime> runtime)
    : runtime_(std::move(runtime)),
      traffic_(runtime_->traffic()),
      connections_(*runtime_),
      reads_(runtime_->data()),
      numbering_(runtime_->count(Role::ps)),
      routes_(connections_),
      steps_(*runtime_, connections_),
      gpu_(*runtime_, connections_, routes_, numbering_),
      tables_(*runtime_, connections_, routes_, numbering_) {}

void Client::begin(const RunningClosure& closure) {
  // The ledger of a ps matches pushes of a second run by their numbers, so every run starts without sums.
  for (auto& [key, combined] : combined_) combined.sums.clear();
  numbering_.begin(closure);
  restarts_ = connections_.restarts();
}

bool Client::ps_restarted() { return connections_.reconnect() && connections_.restarts() != restarts_; }

void Client::lookup(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                    void* out, ReadMode mode) {
  const CallTrace::Span span(trace_, "lookup");
  const cluster::Traffic::Timed timed(traffic_.pull);
  const Lookup lookup{&variable, ids, out};
  connections_.retry([&] { finish(start({&lookup, 1}, mode)); });
}

void Client::pull(const protocol::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
                  void* out, ReadMode mode) {
  const CallTrace::Span span(trace_, "pull");
  const cluster::Traffic::Timed timed(traffic_.pull);
  const Lookup lookup{.variable = &variable, .out = out, .first_row = first_row, .rows = rows};
  connections_.retry([&] { finish(start({&lookup, 1}, mode)); });
}

void Client::lookup_or_insert(const protocol::VariableDescriptor& table, std::span<const std::int64_t> keys,
                              void* out) {
  const CallTrace::Span span(trace_, "lookup");
  throw_if_cancelled();
  check_ids(table, keys);
  std::vector<std::int64_t> may_be_missing;
  {
    const cluster::Traffic::Timed timed(traffic_.pull);
    traffic_.pull.count(keys.size(), keys.size() * table.row_bytes());
    connections_.retry([&] {
      std::vector<RemoteReads::Segment> remote;
      tables_.start(table, MissingKeys::initial, keys, static_cast<std::byte*>(out), ReadMode::relaxed,
                    remote);
      may_be_missing.clear();
      for (const RemoteReads::Segment& segment : remote)
        may_be_missing.insert(may_be_missing.end(), segment.keys.begin(), segment.keys.end());
      if (!remote.empty()) finish(reads_.start(std::move(remote), false));
    });
  }
  const cluster::Traffic::Timed timed(traffic_.push);
  numbering_.next_push();  // always: a second run may find other missing keys, but must number alike
  tables_.push(table, protocol::RowOp::insert, may_be_missing, nullptr, false);
}

Client::Reading Client::start(std::span<const Lookup> lookups, ReadMode mode) {
  const CallTrace::Span span(trace_, "read");
  throw_if_cancelled();
  for (const Lookup& lookup : lookups) {
    check_ids(*lookup.variable, lookup.ids);
    check_rows(*lookup.variable, lookup.first_row, lookup.rows);
  }
  std::vector<RemoteReads::Segment> remote;
  for (const Lookup& lookup : lookups) {
    const std::uint64_t rows = lookup.rows != 0 ? lookup.rows : lookup.ids.size();
    traffic_.pull.count(rows, rows * lookup.variable->row_bytes());
    if (lookup.variable->table) {
      tables_.start(*lookup.variable, lookup.missing.value_or(lookup.variable->policy.missing), lookup.ids,
                    static_cast<std::byte*>(lookup.out), mode, remote);
    } else if (lookup.ids.empty()) {
      start_dense(lookup, mode, remote);
    } else {
      const Route& route = routes_.of(*lookup.variable);
      if (route.mapped && mode == ReadMode::relaxed) {
        gather(route, lookup);
        require_alive(route, lookup.ids);
      } else {
        start_sparse(lookup, mode, remote);
      }
    }
  }
  return remote.empty() ? 0 : reads_.start(std::move(remote), mode == ReadMode::consistent);
}

bool Client::ready(Reading reading) {
  if (reading == 0) return true;
  runtime_->data().progress();
  return reads_.ready(reading);
}

void Client::finish(Reading reading) {
  if (reading == 0) return;
  const CallTrace::Span span(trace_, "wait");
  reads_.wait(reading, runtime_->wait_timeout(), "read rows");
}

void Client::gather(const Route& route, const Lookup& lookup) {
  const std::uint64_t row_bytes = lookup.variable->row_bytes();
  if (row_bytes == 0) return;
  auto* out = static_cast<std::byte*>(lookup.out);
  if (route.shards.size() == 1) {
    protocol::gather_ids(route.shards[0].values, row_bytes, lookup.ids, out);
  } else {
    protocol::gather_ids(route.partition, route.origins.data(), row_bytes, lookup.ids, out);
  }
}

/// REQUIRES: the rows have been copied. If this returns, they were read from live ps.
void Client::require_alive(const Route& route, std::span<const std::int64_t> ids) {
  for (const ShardRoute& shard : route.shards) {
    if (shard.connection->alive()) continue;
    const bool touched = std::any_of(ids.begin(), ids.end(), [&](std::int64_t id) {
      return &route.shards[route.partition.shard_of(static_cast<std::uint64_t>(id))] == &shard;
    });
    if (touched) shard.connection->require_alive();
  }
}

void Client::start_sparse(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote) {
  const protocol::VariableDescriptor& variable = *lookup.variable;
  const Route& route = routes_.of(variable);
  const std::uint64_t row_bytes = variable.row_bytes();
  if (row_bytes == 0) return;
  auto* out = static_cast<std::byte*>(lookup.out);
  by_shard_.sort(route, lookup.ids);
  for (std::size_t s = 0; s < route.shards.size(); ++s) {
    if (by_shard_.count(s) == 0) continue;
    const ShardRoute& shard = route.shards[s];
    const auto rows = by_shard_.rows(s);
    const auto order = by_shard_.order(s);
    const auto copy = [&] { protocol::gather_rows(shard.values, row_bytes, rows, order, out); };
    if (shard.values != nullptr && read_mapped(shard, mode, copy)) continue;
    RemoteReads::Segment segment{.peer = &shard.connection->peer(),
                                 .variable = variable.id,
                                 .shard = shard.number,
                                 .row_bytes = row_bytes,
                                 .rows = {rows.begin(), rows.end()},
                                 .order = {order.begin(), order.end()},
                                 .count = rows.size(),
                                 .out = out,
                                 .values = shard.sent_by_lookups(variable)};
    if (rows.size() == lookup.ids.size()) segment.order.clear();  // all ids, in the order of the call
    shard.connection->require_alive();
    remote.push_back(std::move(segment));
  }
}

void Client::start_dense(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote) {
  const protocol::VariableDescriptor& variable = *lookup.variable;
  const std::uint64_t row_bytes = variable.row_bytes();
  const std::uint64_t end_row = lookup.first_row + lookup.rows;
  if (lookup.rows == 0 || row_bytes == 0) return;
  for (const ShardRoute& shard : routes_.of(variable).shards) {
    const std::uint64_t begin = std::max(lookup.first_row, shard.location.first_row);
    const std::uint64_t end = std::min(end_row, shard.location.first_row + shard.location.rows);
    if (begin >= end) continue;
    const std::uint64_t first = begin - shard.location.first_row;
    auto* to = static_cast<std::byte*>(lookup.out) + (begin - lookup.first_row) * row_bytes;
    const std::uint64_t bytes = (end - begin) * row_bytes;
    const auto copy = [&] { protocol::copy_bytes(shard.values + first * row_bytes, bytes, to); };
    if (shard.values != nullptr && read_mapped(shard, mode, copy)) continue;
    shard.connection->require_alive();
    const std::uint64_t offset = shard.location.offset + first * row_bytes;
    if (mode == ReadMode::relaxed && shard.in_host_memory() && !variable.storage.int8 &&
        shard.connection->reads().read(shard.location.region, offset, {to, bytes}))
      continue;
    remote.push_back({.peer = &shard.connection->peer(),
                      .variable = variable.id,
                      .shard = shard.number,
                      .row_bytes = row_bytes,
                      .first_row = first,
                      .count = end - begin,
                      .out = to,
                      // Relaxed ones by RMA are exact.
                      .values = shard.connection->path() == Path::rma ? protocol::SentValues::stored
                                                                      : shard.sent_values(variable)});
  }
}

void Client::push(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                  const void* gradient) {
  const Push push{&variable, ids, gradient};
  this->push({&push, 1});
}

void Client::push(std::span<const Push> pushes) {
  const CallTrace::Span span(trace_, "push");
  throw_if_cancelled();
  const cluster::Traffic::Timed timed(traffic_.push);
  for (const Push& push : pushes) check_ids(*push.variable, push.ids);
  for (const Push& push : pushes) {
    traffic_.push.count(push.ids.size(), push.ids.size() * push.variable->row_bytes());
    push_one(push, pushes.size() > 1);
  }
  if (pushes.size() == 1) return;
  connections_.publish();
}

void Client::push_one(const Push& push, bool more) {
  const protocol::VariableDescriptor& variable = *push.variable;
  const bool has_rows = variable.rows() != 0 && variable.row_bytes() != 0;
  if (has_rows && variable.communication.combine_pushes && combines_pushes_ && numbering_.in_closure()) {
    return push_combined(push, more);
  }
  numbering_.next_push();
  if (!has_rows) return;
  // SGD is linear in the gradient, so two rows with the same id may be applied separately.
  if (variable.optimizer.kind == OptimizerKind::sgd) {
    return push_unique(variable, push.ids, static_cast<const std::byte*>(push.gradient), more);
  }
  const Combiner::Rows combined = combiner_.combine(
      variable.dtype, variable.width(), variable.table ? kAnyKey : variable.rows(), push.ids, push.gradient);
  push_unique(variable, combined.ids, combined.values, more);
}

/// Adds the rows of frequent ids to their sums, and pushes the other rows and the sums that are due.
void Client::push_combined(const Push& push, bool more) {
  const protocol::VariableDescriptor& variable = *push.variable;
  const std::pair key(variable.id, variable.part);
  auto found = combined_.find(key);
  const auto& wanted = variable.communication.combine_pushes;
  if (found == combined_.end() || found->second.variable.communication.combine_pushes != wanted) {
    CombinePushes options = *wanted;
    options.rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(options.rows, variable.rows()));
    found = combined_
                .insert_or_assign(key,
                                  Combined{variable, GradientSums(variable.dtype, variable.width(), options)})
                .first;
  }
  GradientSums& sums = found->second.sums;
  numbering_.next_push();
  const auto* gradient = static_cast<const std::byte*>(push.gradient);
  Combiner::Rows rows{push.ids, gradient};
  if (variable.optimizer.kind != OptimizerKind::sgd)
    rows = combiner_.combine(variable.dtype, variable.width(), variable.rows(), push.ids, gradient);
  const GradientSums::Rows rest = sums.add(rows.ids, rows.values);
  push_unique(variable, rest.ids, rest.values, more, protocol::RowOp::gradient, rest.order);
  if (sums.due()) push_sums(variable, sums, more);
}

void Client::push_sums(const protocol::VariableDescriptor& variable, GradientSums& sums, bool more) {
  // An error may have ended the function, whose cleanup pushes or flushes. Its next run has other numbers
  // then.
  if (connections_.restarts() != restarts_) {
    throw Error(
        Code::unavailable,
        fmt::format("a ps was restarted or replaced before the sums of \"{}\" were sent; the function "
                    "has to run again",
                    variable.name));
  }
  numbering_.next_push();
  const GradientSums::Rows rows = sums.take();
  push_unique(variable, rows.ids, rows.values, more, protocol::RowOp::gradient, rows.order);
}

void Client::send_sums() {
  for (auto& [key, combined] : combined_) {
    if (!combined.sums.idle()) push_sums(combined.variable, combined.sums, false);
  }
}

bool Client::combine_pushes(bool combine) {
  if (!combine) send_sums();
  return std::exchange(combines_pushes_, combine);
}

std::uint64_t Client::end_step(std::uint32_t group, const std::string& name) {
  const CallTrace::Span span(trace_, "end step");
  send_sums();
  return steps_.end_step(group, name);
}

void Client::leave(std::uint32_t group) {
  send_sums();
  steps_.leave(group);
}

void Client::push_unique(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                         const std::byte* gradient, bool more, protocol::RowOp op,
                         std::span<const std::uint32_t> order_of_ids) {
  if (ids.empty()) return;
  if (variable.table) return tables_.push(variable, op, ids, gradient, more);
  const std::uint64_t row_bytes = variable.row_bytes();
  const bool as_bfloat16 = variable.communication.bfloat16 && op == protocol::RowOp::gradient;
  const Route& route = routes_.of(variable);
  if (route.shards.size() == 1) {
    const ShardRoute& shard = route.shards[0];
    const PushRows push{.variable = variable.id,
                        .shard = shard.number,
                        .row_bytes = row_bytes,
                        .ids = ids,
                        .order = order_of_ids,
                        .count = ids.size(),
                        .gradient = gradient,
                        .op = op,
                        .bfloat16 = as_bfloat16,
                        .stochastic_rounding = variable.communication.stochastic_rounding};
    return shard.connection->push(push, numbering_, more);
  }
  by_shard_.sort(route, ids);
  for (std::size_t s = 0; s < route.shards.size(); ++s) {
    if (by_shard_.count(s) == 0) continue;
    std::span<const std::uint32_t> order = by_shard_.order(s);
    if (!order_of_ids.empty()) {
      positions_.clear();
      for (const std::uint32_t i : order) positions_.push_back(order_of_ids[i]);
      order = positions_;
    }
    PushRows push{.variable = variable.id,
                  .shard = static_cast<std::uint32_t>(s),
                  .row_bytes = row_bytes,
                  .rows = by_shard_.rows(s),
                  .order = order,
                  .count = order.size(),
                  .gradient = gradient,
                  .op = op,
                  .bfloat16 = as_bfloat16,
                  .stochastic_rounding = variable.communication.stochastic_rounding};
    // Positions ascend, so the gradient rows of this shard are contiguous in this case. It is the usual case:
    // sorted ids.
    if (order_of_ids.empty() && order.back() - order.front() + std::size_t{1} == order.size()) {
      push.gradient += order.front() * row_bytes;
      push.order = {};
    }
    route.shards[s].connection->push(push, numbering_, more);
  }
}

void Client::push_dense(const protocol::VariableDescriptor& variable, const void* gradient,
                        const Arrival* arrival) {
  push_all_rows(variable, gradient, arrival, false);
}

std::shared_ptr<const std::byte> Client::mapped(const protocol::VariableDescriptor& variable) {
  const Route& route = routes_.of(variable);
  if (route.shards.size() != 1) {
    throw Error(Code::failed_precondition,
                fmt::format("cannot map variable \"{}\": found {} shards, expected one; map each of its "
                            "variables()",
                            variable.name, route.shards.size()));
  }
  if (variable.storage.int8) {
    throw Error(
        Code::failed_precondition,
        fmt::format("cannot map variable \"{}\": it stores int8 rows; use lookup or pull", variable.name));
  }
  const ShardRoute& shard = route.shards.front();
  PsConnection& ps = *shard.connection;
  std::shared_ptr<const std::byte> memory;
  if (shard.in_host_memory()) memory = ps.reads().shared(shard.location.region, shard.location.offset);
  if (memory == nullptr) {
    throw Error(
        Code::failed_precondition,
        fmt::format("cannot map variable \"{}\": its shard on {} is in {}; use lookup or pull", variable.name,
                    ps.peer().name(),
                    shard.in_host_memory() ? "memory that this rank cannot map" : "the memory of a GPU"));
  }
  return memory;
}

bool Client::reaches_from_gpu(const protocol::VariableDescriptor& variable) {
  if (!runtime_->data().reaches_gpus() && !gpu::are_stand_ins()) return false;
  const auto& shards = routes_.of(variable).shards;
  return std::all_of(shards.begin(), shards.end(), [](const ShardRoute& shard) {
    return shard.in_host_memory() && shard.connection->path() == Path::rma;
  });
}

void Client::push_dense_from_gpu(const protocol::VariableDescriptor& variable, const void* gradient) {
  push_all_rows(variable, gradient, nullptr, true);
}

void Client::push_all_rows(const protocol::VariableDescriptor& variable, const void* gradient,
                           const Arrival* arrival, bool on_gpu) {
  const CallTrace::Span span(trace_, "push");
  const std::uint64_t row_bytes = variable.row_bytes();
  const cluster::Traffic::Timed timed(traffic_.push);
  throw_if_cancelled();
  send_sums();
  traffic_.push.count(variable.rows(), variable.rows() * row_bytes);
  numbering_.next_push();
  for (const ShardRoute& shard : routes_.of(variable).shards) {
    const std::uint64_t before = shard.location.first_row * row_bytes;
    const Arrival of_shard = [&](std::uint64_t bytes) { (*arrival)(before + bytes); };
    PushRows push{.variable = variable.id,
                  .shard = shard.number,
                  .row_bytes = row_bytes,
                  .count = shard.location.rows,
                  .gradient = static_cast<const std::byte*>(gradient) + before};
    if (arrival != nullptr) push.arrival = &of_shard;
    push.on_gpu = on_gpu;
    push.bfloat16 = variable.communication.bfloat16 && !on_gpu;
    push.stochastic_rounding = variable.communication.stochastic_rounding;
    shard.connection->push(push, numbering_);
  }
}

void Client::flush() {
  const CallTrace::Span span(trace_, "flush");
  send_sums();
  const bool nothing = connections_.idle();
  throw_if_cancelled();
  if (nothing) return;
  const cluster::Traffic::Timed timed(traffic_.flush);
  traffic_.flush.count(0, 0);
  connections_.flush();
}

Client::PushPositions Client::pushed(const protocol::VariableDescriptor& variable) {
  send_sums();
  PushPositions positions;
  for (const ShardRoute& shard : routes_.of(variable).shards)
    positions.emplace_back(shard.connection, shard.connection->pushed());
  return positions;
}

bool Client::applied(const PushPositions& positions) {
  return std::all_of(positions.begin(), positions.end(),
                     [](const auto& of_ps) { return of_ps.first->applied(of_ps.second); });
}

void Client::wait(const PushPositions& positions) {
  const CallTrace::Span span(trace_, "wait");
  throw_if_cancelled();
  const cluster::Traffic::Timed timed(traffic_.flush);
  traffic_.flush.count(0, 0);
  for (const auto& [connection, position] : positions) connection->wait(position);
}

void Client::update(const protocol::VariableDescriptor& variable, protocol::RowOp op, std::uint64_t first_row,
                    std::uint64_t rows, const void* values) {
  const CallTrace::Span span(trace_, "update");
  throw_if_cancelled();
  check_rows(variable, first_row, rows);
  send_sums();
  numbering_.next_push();
  const std::uint64_t row_bytes = variable.row_bytes();
  const Route& route = routes_.of(variable);
  const auto overlap = [&](const ShardRoute& shard) {
    const std::uint64_t begin = std::max(first_row, shard.location.first_row);
    const std::uint64_t end = std::min(first_row + rows, shard.location.first_row + shard.location.rows);
    return std::pair(begin, std::max(begin, end));
  };
  for (const ShardRoute& shard : route.shards) {
    const auto [begin, end] = overlap(shard);
    const auto* from = static_cast<const std::byte*>(values) + (begin - first_row) * row_bytes;
    const PushRows push{.variable = variable.id,
                        .shard = shard.number,
                        .row_bytes = row_bytes,
                        .first_row = begin - shard.location.first_row,
                        .count = end - begin,
                        .gradient = from,
                        .op = op};
    shard.connection->push(push, numbering_);
  }
  for (const ShardRoute& shard : route.shards) {
    if (overlap(shard).first < overlap(shard).second) shard.connection->flush();
  }
}

void Client::scatter(const protocol::VariableDescriptor& variable, protocol::RowOp op,
                     std::span<const std::int64_t> ids, const void* values) {
  const CallTrace::Span span(trace_, "update");
  throw_if_cancelled();
  check_ids(variable, ids);
  send_sums();
  numbering_.next_push();
  push_unique(variable, ids, static_cast<const std::byte*>(values), false, op);
  for (const ShardRoute& shard : routes_.of(variable).shards) shard.connection->flush();
}

void Client::set_rows_in_every_run(const protocol::VariableDescriptor& variable,
                                   std::span<const std::int64_t> ids, const void* values) {
  throw_if_cancelled();
  check_ids(variable, ids);
  if (ids.empty()) return;
  numbering_.next_push_of_every_run();
  push_unique(variable, ids, static_cast<const std::byte*>(values), false, protocol::RowOp::set);
  for (const ShardRoute& shard : routes_.of(variable).shards) shard.connection->flush();
}

void Client::set_learning_rate(const protocol::VariableDescriptor& variable, double rate) {
  throw_if_cancelled();
  send_sums();
  numbering_.next_push();
  const Route& route = routes_.of(variable);
  for (const ShardRoute& shard : route.shards)
    shard.connection->set_learning_rate(variable.id, shard.number, rate, numbering_);
  for (const ShardRoute& shard : route.shards) shard.connection->flush();
}

std::uint64_t Client::fetch_add(int ps, std::uint64_t index, std::uint64_t delta) {
  const CallTrace::Span span(trace_, "fetch_add");
  throw_if_cancelled();
  std::uint64_t before = 0;
  const auto add = [&] { before = connections_.at(ps).fetch_add(index, delta); };
  delta == 0 ? connections_.retry(add) : add();  // adding 0 only reads
  return before;
}

void Client::count(int ps, std::uint32_t index, std::uint64_t delta) {
  throw_if_cancelled();
  send_sums();
  numbering_.next_push();
  connections_.at(ps).count(index, delta, numbering_);
}

}  // namespace capstan::client
