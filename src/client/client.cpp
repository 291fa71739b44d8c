// client.cpp -- checks, routing, and the choice between mapped memory, RMA and messages for each shard.
#include "client/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "base/fence.hpp"
#include "capstan/cancellation.hpp"
#include "capstan/serialize.hpp"
#include "gpu/gpu.hpp"
#include "protocol/row_copy.hpp"
#include "transport/bytes.hpp"

namespace capstan::client {
namespace {

/// Reads of a mapped shard that a writer has disturbed, before the ps is asked to serve one.
constexpr int kConsistentTries = 32;
/// Positions within a call are 32-bit numbers in ByShard and Combiner.
constexpr std::size_t kMostIds = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Client::Client(std::shared_ptr<cluster::Runtime> runtime)
    : runtime_(std::move(runtime)),
      traffic_(runtime_->traffic()),
      rpc_(runtime_->data()),
      reads_(runtime_->data()),
      links_(static_cast<std::size_t>(runtime_->count(Role::ps))) {
  runtime_->data().on_message(transport::kPsReturned,
                              [this](const transport::Message& message) { take_returned(message); });
  runtime_->data().on_message(transport::kPushApplied, [this](const transport::Message& message) {
    const auto applied = transport::read_header<protocol::PushApplied>(message);
    const cluster::Member& from = runtime_->member(message.from);
    if (!applied || from.role != Role::ps) return;
    const auto& link = links_.at(static_cast<std::size_t>(from.index));
    if (link) link->take_applied(*applied);
  });
}

Client::~Client() = default;

/// Each process is news once; a ps says so to a worker that may not have heard. One whose place a spare has
/// taken is not asked any more.
void Client::take_returned(const transport::Message& message) {
  const auto returned = transport::read_header<protocol::PsReturned>(message);
  if (!returned) return;
  auto ps = from_bytes<cluster::Member>(message.payload);
  if (ps.rank < 0 || ps.rank >= runtime_->table().places()) return;
  Process& process = processes_[ps.rank];
  if (returned->life < process.life || (returned->life == process.life && ps.pid == process.pid)) return;
  process = {returned->life, ps.pid};
  // The one before may be cut off, which the transport does not notice.
  runtime_->drop_data_peer(ps.rank);
  returned_.insert_or_assign(ps.rank, std::move(ps));
}

PsLink& Client::link(int ps) {
  auto& link = links_.at(static_cast<std::size_t>(ps));
  if (!link) {
    if (auto back = returned_.extract(runtime_->member(Role::ps, ps).rank))
      runtime_->ps_returned_to_data(back.mapped());
    link = std::make_unique<PsLink>(*runtime_, rpc_, ps, closure_, returned_, moves_,
                                    [this] { let_go_of_gpus(); });
  }
  return *link;
}

PsLink& Client::living_link(int ps) {
  PsLink& there = link(ps);
  const bool idle = there.idle();
  try {
    there.require_alive();
  } catch (const Error& error) {
    if (error.code() != Code::unavailable || !idle || !there.alive()) throw;
  }
  return there;
}

std::uint64_t Client::returns() const {
  std::uint64_t sum = 0;
  for (const auto& link : links_) sum += link ? link->returns() : 0;
  return sum;
}

void Client::begin(const RunningClosure& closure) {
  const std::uint64_t pushes = closure_.pushes;
  closure_ = closure;
  closure_.pushes = pushes;
  calls_.clear();
  returns_ = returns();
}

void Client::number_push() {
  ++closure_.pushes;
  if (calls_.size() <= closure_.replica) calls_.resize(closure_.replica + std::size_t{1});
  closure_.call = calls_[closure_.replica]++;
}

bool Client::ps_came_back() {
  runtime_->data().progress();
  for (const auto& link : links_) {
    if (!link || link->alive()) continue;
    try {
      link->require_alive();
    } catch (const Error&) {
      if (!link->alive()) return false;
    }
  }
  return returns() != returns_;
}

void Client::retry(const std::function<void()>& read) {
  while (true) {
    const std::uint64_t before = returns();
    try {
      return read();
    } catch (const Error& error) {
      if (error.code() != Code::unavailable) throw;
      (void)ps_came_back();
      if (returns() == before) throw;
    }
  }
}

std::unique_ptr<Route>& Client::cached_route(const protocol::VariableDescriptor& variable) {
  if (variable.part != 0) return part_routes_[{variable.id, variable.part}];
  if (routes_.size() <= variable.id) routes_.resize(variable.id + std::size_t{1});
  return routes_[variable.id];
}

const Route& Client::route_of(const protocol::VariableDescriptor& variable) {
  auto& route = cached_route(variable);
  if (route && route->moves == moves_) return *route;
  auto made = std::make_unique<Route>(variable);
  for (const protocol::ShardLocation& then : variable.shards) {
    ShardRoute shard;
    shard.number = variable.part != 0 ? variable.part - 1 : static_cast<std::uint32_t>(made->shards.size());
    shard.link = &link(then.ps);
    shard.place = shard.link->place_now(variable.id, shard.number, then);
    shard.place.first_row = then.first_row;  // of a part its own, 0
    const protocol::ShardLocation& place = shard.place;
    const Path path = shard.link->path();
    if (place.region != protocol::kNoRegion && (path == Path::mapped || path == Path::in_process)) {
      shard.values = shard.link->window(place.region).mapped() + place.offset;
      made->origins.push_back(reinterpret_cast<std::uintptr_t>(shard.values) -
                              place.first_row * variable.row_bytes());
      shard.version = reinterpret_cast<const std::uint64_t*>(
          shard.link->window(place.version_region).mapped() + place.version_offset);
    } else {
      made->mapped = false;
    }
    made->shards.push_back(shard);
  }
  made->moves = moves_;
  return *(route = std::move(made));
}

void Client::check(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids) {
  if (ids.size() > kMostIds) {
    throw Error(Code::invalid_argument,
                fmt::format("{} ids of variable \"{}\" in one call; expected at most {}: split the call",
                            ids.size(), variable.name, kMostIds));
  }
  const auto last = static_cast<std::int64_t>(variable.rows()) - 1;
  // The sign of either is set where an id is not in [0, last]; without a way out the loop becomes vectors.
  std::int64_t signs = 0;
  for (const std::int64_t id : ids) {
    signs |=
        id | static_cast<std::int64_t>(static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(id));
  }
  if (signs >= 0) return;
  const auto bad =
      std::find_if(ids.begin(), ids.end(), [last](std::int64_t id) { return id < 0 || id > last; });
  throw protocol::no_such_row(*bad, static_cast<std::size_t>(bad - ids.begin()), variable.name,
                              variable.rows());
}

void Client::check_rows(const protocol::VariableDescriptor& variable, std::uint64_t first_row,
                        std::uint64_t rows) {
  if (first_row <= variable.rows() && rows <= variable.rows() - first_row) return;
  throw Error(Code::out_of_range,
              fmt::format("rows {} to {} are not all in variable \"{}\", which has {} rows", first_row,
                          first_row + rows, variable.name, variable.rows()));
}

void Client::lookup(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                    void* out, ReadMode mode) {
  const cluster::Traffic::Timed timed(traffic_.pull);
  const Lookup lookup{&variable, ids, out};
  retry([&] { finish(start({&lookup, 1}, mode)); });
}

void Client::pull(const protocol::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
                  void* out, ReadMode mode) {
  const cluster::Traffic::Timed timed(traffic_.pull);
  const Lookup lookup{&variable, {}, out, first_row, rows};
  retry([&] { finish(start({&lookup, 1}, mode)); });
}

Client::Reading Client::start(std::span<const Lookup> lookups, ReadMode mode) {
  throw_if_cancelled();
  for (const Lookup& lookup : lookups) {
    check(*lookup.variable, lookup.ids);
    check_rows(*lookup.variable, lookup.first_row, lookup.rows);
  }
  std::vector<RemoteReads::Segment> remote;
  for (const Lookup& lookup : lookups) {
    const std::uint64_t rows = lookup.ids.empty() ? lookup.rows : lookup.ids.size();
    traffic_.pull.count(rows, rows * lookup.variable->row_bytes());
    if (lookup.ids.empty()) {
      start_dense(lookup, mode, remote);
    } else {
      const Route& route = route_of(*lookup.variable);
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
  if (reading != 0) reads_.wait(reading, runtime_->patience(), "read rows");
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

/// Asked after the rows have been copied: then they are not of a ps that was dead.
void Client::require_alive(const Route& route, std::span<const std::int64_t> ids) {
  for (const ShardRoute& shard : route.shards) {
    if (shard.link->alive()) continue;
    const bool touched = std::any_of(ids.begin(), ids.end(), [&](std::int64_t id) {
      return &route.shards[route.partition.shard_of(static_cast<std::uint64_t>(id))] == &shard;
    });
    if (touched) shard.link->require_alive();
  }
}

bool Client::read_mapped(const ShardRoute& shard, ReadMode mode, const std::function<void()>& copy) {
  if (mode == ReadMode::relaxed) {
    copy();
    shard.link->require_alive();
    return true;
  }
  const std::atomic_ref<const std::uint64_t> version(*shard.version);
  for (int tries = 0; tries < kConsistentTries; ++tries) {
    const std::uint64_t before = version.load(std::memory_order_acquire);
    if (before % 2 != 0) continue;
    copy();
    thread_fence(std::memory_order_acquire);
    if (version.load(std::memory_order_relaxed) != before) continue;
    shard.link->require_alive();
    return true;
  }
  return false;
}

void Client::start_sparse(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote) {
  const protocol::VariableDescriptor& variable = *lookup.variable;
  const Route& route = route_of(variable);
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
    RemoteReads::Segment segment{
        &shard.link->peer(),          variable.id, shard.number, row_bytes, {rows.begin(), rows.end()},
        {order.begin(), order.end()}, 0,           rows.size(),  out};
    if (rows.size() == lookup.ids.size()) segment.order.clear();  // all of the call, in its order
    shard.link->require_alive();
    remote.push_back(std::move(segment));
  }
}

void Client::start_dense(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote) {
  const protocol::VariableDescriptor& variable = *lookup.variable;
  const std::uint64_t row_bytes = variable.row_bytes();
  const std::uint64_t end_row = lookup.first_row + lookup.rows;
  if (lookup.rows == 0 || row_bytes == 0) return;
  for (const ShardRoute& shard : route_of(variable).shards) {
    const std::uint64_t begin = std::max(lookup.first_row, shard.place.first_row);
    const std::uint64_t end = std::min(end_row, shard.place.first_row + shard.place.rows);
    if (begin >= end) continue;
    const std::uint64_t first = begin - shard.place.first_row;
    auto* to = static_cast<std::byte*>(lookup.out) + (begin - lookup.first_row) * row_bytes;
    const std::uint64_t bytes = (end - begin) * row_bytes;
    const auto copy = [&] { protocol::copy_bytes(shard.values + first * row_bytes, bytes, to); };
    if (shard.values != nullptr) {
      if (read_mapped(shard, mode, copy)) continue;
    } else if (shard.reads_by_rma() && mode == ReadMode::relaxed) {
      shard.link->require_alive();
      shard.link->window(shard.place.region)
          .get(shard.place.offset + first * row_bytes, {to, bytes},
               transport::deadline_in(runtime_->patience()));
      continue;
    }
    shard.link->require_alive();
    remote.push_back(
        {&shard.link->peer(), variable.id, shard.number, row_bytes, {}, {}, first, end - begin, to});
  }
}

void Client::push(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                  const void* gradient) {
  const Push push{&variable, ids, gradient};
  this->push({&push, 1});
}

void Client::push(std::span<const Push> pushes) {
  throw_if_cancelled();
  const cluster::Traffic::Timed timed(traffic_.push);
  for (const Push& push : pushes) check(*push.variable, push.ids);
  for (const Push& push : pushes) {
    traffic_.push.count(push.ids.size(), push.ids.size() * push.variable->row_bytes());
    push_one(push, pushes.size() > 1);
  }
  if (pushes.size() == 1) return;
  for (const auto& link : links_) {
    if (link && (link->path() == Path::mapped || link->path() == Path::rma)) link->publish();
  }
}

void Client::push_one(const Push& push, bool more) {
  const protocol::VariableDescriptor& variable = *push.variable;
  number_push();
  if (variable.row_bytes() == 0) return;
  // SGD is linear in the gradient: two rows with one id may as well be applied one after the other.
  if (variable.optimizer.kind == OptimizerKind::sgd) {
    return push_unique(variable, push.ids, static_cast<const std::byte*>(push.gradient), more);
  }
  const Combiner::Rows combined =
      combiner_.combine(variable.dtype, variable.width(), variable.rows(), push.ids, push.gradient);
  push_unique(variable, combined.ids, combined.values, more);
}

void Client::push_unique(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                         const std::byte* gradient, bool more, protocol::RowOp op) {
  if (ids.empty()) return;
  const std::uint64_t row_bytes = variable.row_bytes();
  const Route& route = route_of(variable);
  if (route.shards.size() == 1) {
    const ShardRoute& shard = route.shards[0];
    const PushRows push{variable.id, shard.number, row_bytes, {}, ids, {}, 0, ids.size(), gradient, op};
    return shard.link->push(push, more);
  }
  by_shard_.sort(route, ids);
  for (std::size_t s = 0; s < route.shards.size(); ++s) {
    if (by_shard_.count(s) == 0) continue;
    const auto order = by_shard_.order(s);
    PushRows push{variable.id, static_cast<std::uint32_t>(s),
                  row_bytes,   by_shard_.rows(s),
                  {},          order,
                  0,           order.size(),
                  gradient,    op};
    // Positions ascend, so these ends mean that no other shard's rows lie between: the usual case, sorted
    // ids.
    if (order.back() - order.front() + std::size_t{1} == order.size()) {
      push.gradient += order.front() * row_bytes;
      push.order = {};
    }
    route.shards[s].link->push(push, more);
  }
}

void Client::push_dense(const protocol::VariableDescriptor& variable, const void* gradient,
                        const Arrival* arrival) {
  push_all_rows(variable, gradient, arrival, false);
}

bool Client::reaches_from_gpu(const protocol::VariableDescriptor& variable) {
  if (!runtime_->data().reaches_gpus() && !gpu::are_stand_ins()) return false;
  const auto& shards = route_of(variable).shards;
  return std::all_of(shards.begin(), shards.end(),
                     [](const ShardRoute& shard) { return shard.reads_by_rma(); });
}

void Client::push_dense_from_gpu(const protocol::VariableDescriptor& variable, const void* gradient) {
  push_all_rows(variable, gradient, nullptr, true);
}

void Client::push_all_rows(const protocol::VariableDescriptor& variable, const void* gradient,
                           const Arrival* arrival, bool on_gpu) {
  const std::uint64_t row_bytes = variable.row_bytes();
  const cluster::Traffic::Timed timed(traffic_.push);
  throw_if_cancelled();
  traffic_.push.count(variable.rows(), variable.rows() * row_bytes);
  number_push();
  for (const ShardRoute& shard : route_of(variable).shards) {
    const std::uint64_t before = shard.place.first_row * row_bytes;
    const Arrival of_shard = [&](std::uint64_t bytes) { (*arrival)(before + bytes); };
    PushRows push{variable.id,
                  shard.number,
                  row_bytes,
                  {},
                  {},
                  {},
                  0,
                  shard.place.rows,
                  static_cast<const std::byte*>(gradient) + before};
    if (arrival != nullptr) push.arrival = &of_shard;
    push.on_gpu = on_gpu;
    shard.link->push(push);
  }
}

void Client::flush() {
  const bool nothing =
      std::all_of(links_.begin(), links_.end(), [](const auto& link) { return !link || link->idle(); });
  throw_if_cancelled();
  if (nothing) return;
  const cluster::Traffic::Timed timed(traffic_.flush);
  traffic_.flush.count(0, 0);
  for (const auto& link : links_) {
    if (link) link->flush();
  }
}

void Client::update(const protocol::VariableDescriptor& variable, protocol::RowOp op, std::uint64_t first_row,
                    std::uint64_t rows, const void* values) {
  throw_if_cancelled();
  check_rows(variable, first_row, rows);
  number_push();
  const std::uint64_t row_bytes = variable.row_bytes();
  const Route& route = route_of(variable);
  const auto overlap = [&](const ShardRoute& shard) {
    const std::uint64_t begin = std::max(first_row, shard.place.first_row);
    const std::uint64_t end = std::min(first_row + rows, shard.place.first_row + shard.place.rows);
    return std::pair(begin, std::max(begin, end));
  };
  for (const ShardRoute& shard : route.shards) {
    const auto [begin, end] = overlap(shard);
    const auto* from = static_cast<const std::byte*>(values) + (begin - first_row) * row_bytes;
    shard.link->push({variable.id,
                      shard.number,
                      row_bytes,
                      {},
                      {},
                      {},
                      begin - shard.place.first_row,
                      end - begin,
                      from,
                      op});
  }
  for (const ShardRoute& shard : route.shards) {
    if (overlap(shard).first < overlap(shard).second) shard.link->flush();
  }
}

void Client::scatter(const protocol::VariableDescriptor& variable, protocol::RowOp op,
                     std::span<const std::int64_t> ids, const void* values) {
  throw_if_cancelled();
  check(variable, ids);
  number_push();
  push_unique(variable, ids, static_cast<const std::byte*>(values), false, op);
  for (const ShardRoute& shard : route_of(variable).shards) shard.link->flush();
}

std::uint64_t Client::fetch_add(int ps, std::uint64_t index, std::uint64_t delta) {
  throw_if_cancelled();
  std::uint64_t before = 0;
  const auto add = [&] { before = link(ps).fetch_add(index, delta); };
  delta == 0 ? retry(add) : add();  // to add nothing is to read
  return before;
}

void Client::count(int ps, std::uint32_t index, std::uint64_t delta) {
  throw_if_cancelled();
  number_push();
  link(ps).count(index, delta);
}

}  // namespace capstan::client
