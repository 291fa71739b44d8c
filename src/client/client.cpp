// client.cpp -- routes rows to shards and moves them.
#include "client/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "capstan/serialize.hpp"
#include "client/combine.hpp"
#include "shard/partition.hpp"

namespace capstan::client {
namespace {

/// Rows ahead of the one being copied whose first lines are fetched.
constexpr std::size_t kPrefetchRows = 8;

/// Elements of mapped rows may change while they are read (relaxed reads), which is not for a race detector.
__attribute__((no_sanitize("thread"))) void copy_row(const std::byte* from, std::uint64_t bytes,
                                                     std::byte* to) {
#ifdef __SANITIZE_THREAD__  // it would see through to memcpy
  for (std::uint64_t i = 0; i < bytes; ++i) to[i] = static_cast<const volatile std::byte*>(from)[i];
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace

struct Client::Routed {
  const shard::ShardPlace* place = nullptr;
  std::uint32_t shard = 0;
  std::vector<std::uint32_t> rows;   // within the shard
  std::vector<std::uint32_t> order;  // positions in the call
};

Client::Client(std::shared_ptr<cluster::Runtime> runtime)
    : runtime_(std::move(runtime)),
      rpc_(runtime_->data()),
      links_(static_cast<std::size_t>(runtime_->count(Role::ps))) {}

Client::~Client() = default;

PsLink& Client::link(int ps) {
  auto& link = links_.at(static_cast<std::size_t>(ps));
  if (!link) link = std::make_unique<PsLink>(*runtime_, rpc_, ps);
  return *link;
}

void Client::check_ids(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids) const {
  const std::uint64_t rows = variable.rows();
  // One comparison covers both ends: a negative id is a huge unsigned one.
  const auto bad = std::find_if(ids.begin(), ids.end(),
                                [rows](std::int64_t id) { return static_cast<std::uint64_t>(id) >= rows; });
  if (bad == ids.end()) return;
  throw Error(Code::out_of_range,
              fmt::format("id {} at position {} is not in variable \"{}\", which has rows 0 to {}", *bad,
                          bad - ids.begin(), variable.name, rows - 1));
}

std::span<Client::Routed> Client::route(const shard::VariableDescriptor& variable,
                                        std::span<const std::int64_t> ids) {
  const std::size_t shards = variable.shards.size();
  if (routed_.size() < shards) routed_.resize(shards);
  const shard::DivPartition partition(variable.rows(), shards);
  for (std::size_t s = 0; s < shards; ++s) {
    routed_[s].place = &variable.shards[s];
    routed_[s].shard = static_cast<std::uint32_t>(s);
    routed_[s].rows.clear();
    routed_[s].order.clear();
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::uint64_t>(ids[i]);
    Routed& to = routed_[partition.shard_of(id)];
    to.rows.push_back(static_cast<std::uint32_t>(id - to.place->first_row));
    to.order.push_back(static_cast<std::uint32_t>(i));
  }
  return {routed_.data(), shards};
}

void Client::lookup(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids, void* out) {
  check_ids(variable, ids);
  const std::uint64_t row_bytes = variable.row_bytes();
  auto* to = static_cast<std::byte*>(out);
  std::vector<std::pair<cluster::RpcClient::Id, const Routed*>> asked;
  for (const Routed& routed : route(variable, ids)) {
    if (routed.rows.empty()) continue;
    PsLink& ps = link(routed.place->ps);
    ps.require_alive();
    const transport::Window& window = ps.window(routed.place->region);
    if (window.mapped() == nullptr) {
      const shard::LookupRows request{variable.id, routed.shard, routed.rows};
      asked.emplace_back(rpc_.start(ps.peer(), cluster::kLookupRows, to_bytes(request)), &routed);
      continue;
    }
    const std::byte* base = window.mapped() + routed.place->offset;
    const std::size_t count = routed.rows.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kPrefetchRows < count) __builtin_prefetch(base + routed.rows[i + kPrefetchRows] * row_bytes);
      copy_row(base + routed.rows[i] * row_bytes, row_bytes, to + routed.order[i] * row_bytes);
    }
  }
  for (const auto& [id, routed] : asked) {
    const auto values =
        rpc_.wait(id, runtime_->patience(), "look up rows of variable \"" + variable.name + "\"");
    for (std::size_t i = 0; i < routed->order.size(); ++i) {
      std::memcpy(to + routed->order[i] * row_bytes, values.data() + i * row_bytes, row_bytes);
    }
  }
}

void Client::pull(const shard::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
                  void* out) {
  if (first_row > variable.rows() || rows > variable.rows() - first_row) {
    throw Error(Code::out_of_range,
                fmt::format("rows {} to {} are not all in variable \"{}\", which has {} rows", first_row,
                            first_row + rows, variable.name, variable.rows()));
  }
  const std::uint64_t row_bytes = variable.row_bytes();
  for (const shard::ShardPlace& place : variable.shards) {
    const std::uint64_t begin = std::max(first_row, place.first_row);
    const std::uint64_t end = std::min(first_row + rows, place.first_row + place.rows);
    if (begin >= end) continue;
    PsLink& ps = link(place.ps);
    ps.require_alive();
    transport::Window& window = ps.window(place.region);
    const std::uint64_t offset = place.offset + (begin - place.first_row) * row_bytes;
    const std::span<std::byte> to(static_cast<std::byte*>(out) + (begin - first_row) * row_bytes,
                                  (end - begin) * row_bytes);
    if (window.mapped() != nullptr) {
      copy_row(window.mapped() + offset, to.size(), to.data());
    } else {
      window.get(offset, to, transport::deadline_in(runtime_->patience()));
    }
  }
}

void Client::push(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                  const void* gradient) {
  check_ids(variable, ids);
  // SGD is linear in the gradient: two rows with one id may as well be applied one after the other.
  if (variable.optimizer.kind == OptimizerKind::sgd || strictly_increasing(ids) || all_different(ids)) {
    return push_unique(variable, ids, static_cast<const std::byte*>(gradient));
  }
  const Combined combined = combine(variable.dtype, variable.width(), ids, gradient);
  push_unique(variable, combined.ids, combined.rows.data());
}

void Client::push_unique(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                         const std::byte* gradient) {
  const std::uint64_t row_bytes = variable.row_bytes();
  for (const Routed& routed : route(variable, ids)) {
    if (routed.rows.empty()) continue;
    PushRows push{variable.id, routed.shard,       row_bytes, routed.rows, routed.order,
                  0,           routed.rows.size(), gradient};
    // Positions ascend, so these ends mean that no other shard's rows lie between: the usual case, sorted
    // ids.
    if (routed.order.back() - routed.order.front() + 1 == routed.order.size()) {
      push.gradient += routed.order.front() * row_bytes;
      push.order = {};
    }
    link(routed.place->ps).push(push);
  }
}

void Client::push_dense(const shard::VariableDescriptor& variable, const void* gradient) {
  for (std::size_t s = 0; s < variable.shards.size(); ++s) {
    const shard::ShardPlace& place = variable.shards[s];
    const auto* from = static_cast<const std::byte*>(gradient) + place.first_row * variable.row_bytes();
    link(place.ps).push(
        {variable.id, static_cast<std::uint32_t>(s), variable.row_bytes(), {}, {}, 0, place.rows, from});
  }
}

void Client::flush() {
  for (const auto& link : links_) {
    if (link) link->flush();
  }
}

void Client::assign(const shard::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
                    const void* values) {
  if (first_row > variable.rows() || rows > variable.rows() - first_row) {
    throw Error(Code::out_of_range,
                fmt::format("rows {} to {} are not all in variable \"{}\", which has {} rows", first_row,
                            first_row + rows, variable.name, variable.rows()));
  }
  const std::uint64_t row_bytes = variable.row_bytes();
  // Through the ps, so that a shard keeps its one writer. In pieces, so that no message grows with the table.
  const std::uint64_t piece = std::max<std::uint64_t>(1, (std::uint64_t{4} << 20) / row_bytes);
  for (std::size_t s = 0; s < variable.shards.size(); ++s) {
    const shard::ShardPlace& place = variable.shards[s];
    const std::uint64_t end = std::min(first_row + rows, place.first_row + place.rows);
    // What was pushed before must not be applied after: the ring and the calls are two ways to the ps.
    if (std::max(first_row, place.first_row) < end) link(place.ps).flush();
    for (std::uint64_t begin = std::max(first_row, place.first_row); begin < end; begin += piece) {
      const std::uint64_t count = std::min(piece, end - begin);
      const auto* from = static_cast<const std::byte*>(values) + (begin - first_row) * row_bytes;
      const shard::AssignRows request{variable.id,
                                      static_cast<std::uint32_t>(s),
                                      begin - place.first_row,
                                      {from, from + count * row_bytes}};
      rpc_.call(link(place.ps).peer(), cluster::kAssignRows, to_bytes(request), runtime_->patience(),
                "assign rows of variable \"" + variable.name + "\"");
    }
  }
}

std::uint64_t Client::fetch_add(int ps, std::uint64_t index, std::uint64_t delta) {
  PsLink& to = link(ps);
  to.require_alive();
  if (!runtime_->single_host()) {
    // Ranks on the ps's host would use the CPU's atomics and the others perhaps an adapter's, which do not
    // see each other: so the owner adds for all.
    return from_bytes<std::uint64_t>(rpc_.call(to.peer(), cluster::kFetchAdd,
                                               to_bytes(shard::FetchAdd{index, delta}), runtime_->patience(),
                                               "add to a counter"));
  }
  return to.board().fetch_add(to.layout().counter(index), delta,
                              transport::deadline_in(runtime_->patience()));
}

}  // namespace capstan::client
