// shard_creator.cpp -- sends all requests before it waits for the first reply.
#include "strategy/shard_creator.hpp"

#include "base/log.hpp"
#include "capstan/partitioners.hpp"
#include "capstan/serialize.hpp"
#include "protocol/partition.hpp"
#include "strategy/ps_calls.hpp"
#include "transport/bytes.hpp"

namespace capstan::strategy {

ShardCreator::ShardCreator(Context& context, const Recovery& recovery, ShardPlacement& placement)
    : context_(context),
      recovery_(recovery),
      placement_(placement),
      next_variable_(recovery.last_variable() + 1) {}

ShardCreator::Created ShardCreator::create(protocol::VariableDescriptor& descriptor,
                                           const detail::AnyInitialValue& initial) {
  Created created;
  const ClientUse client = context_.use_client();
  client::PsConnections& connections = client->connections();
  const std::uint64_t relocations = connections.relocations();
  const Shape shape(descriptor.shape.begin(), descriptor.shape.end());
  const bool table = descriptor.table;  // one shard on each ps
  const std::uint64_t shards = table ? static_cast<std::uint64_t>(context_.runtime().count(Role::ps))
                                     : placement_.shard_count(descriptor.name, descriptor.dtype, shape);
  const protocol::DivPartition partition(descriptor.rows(), shards);
  protocol::check_shard_rows(descriptor.name, 0, partition.rows_of(0), descriptor.rows());
  const std::uint64_t slot_bytes = protocol::slots_of(descriptor.optimizer.kind).size() * descriptor.width() *
                                   size_of(protocol::slot_dtype(descriptor.dtype));
  const std::uint64_t stored_bytes =
      protocol::stored_row_bytes(descriptor.dtype, descriptor.width(), descriptor.storage);
  Recovery::Locations locations;
  created.existed = recovery_.find(descriptor, shards, locations);
  if (!created.existed) descriptor.id = next_variable_++;
  std::vector<Call> calls;
  const ShardPlacement::State placed = placement_.state();
  for (std::uint64_t s = 0; s < shards; ++s) {
    const int ps =
        table ? static_cast<int>(s) : placement_.next_ps(partition.rows_of(s) * (stored_bytes + slot_bytes));
    if (locations.contains(static_cast<std::uint32_t>(s))) continue;
    const protocol::CreateShard request{descriptor.id,
                                        static_cast<std::uint32_t>(s),
                                        descriptor.name,
                                        descriptor.dtype,
                                        descriptor.shape,
                                        partition.first_row_of(s),
                                        partition.rows_of(s),
                                        descriptor.optimizer,
                                        protocol::seeded(initial.initializer, descriptor.name),
                                        descriptor.group,
                                        initial.fill,
                                        descriptor.memory,
                                        descriptor.storage,
                                        table,
                                        descriptor.policy};
    created.requests.emplace_back(ps, request);
    log::debug("variable \"{}\": shard {} of {}, {} rows on ps {}", shard_name(descriptor.name, s, shards), s,
               shards, partition.rows_of(s), ps);
    calls.push_back(start(ps, request));
  }
  bool any_created = false;
  std::optional<Error> failed;
  for (Call& call : calls) {
    try {
      locations[call.shard] = finish(call, descriptor);
      any_created = true;
    } catch (const Error& error) {
      if (error.code() == Code::unavailable || error.code() == Code::deadline_exceeded) throw;
      if (!failed) failed = error;
    }
  }
  if (failed) {
    placement_.restore(placed);
    if (any_created && !created.existed) drop(descriptor);
    throw *failed;
  }
  if (connections.relocations() != relocations) {
    throw Error(Code::unavailable, "a spare replaced a ps during the creation of variable \"" +
                                       descriptor.name + "\"; create it again");
  }
  for (const auto& [number, location] : locations) descriptor.shards.push_back(location);
  return created;
}

ShardCreator::Call ShardCreator::start(int ps, const protocol::CreateShard& request) {
  const ClientUse client = context_.use_client();
  client::PsConnections& connections = client->connections();
  client::PsConnection& connection = connections.at(ps);
  connection.require_alive();
  auto bytes = to_bytes(request);
  const auto id = connections.rpc().start(connection.peer(), transport::kCreateVariable, bytes);
  return {id, connection.peer().revivals(), request.shard, ps, std::move(bytes)};
}

protocol::ShardLocation ShardCreator::finish(Call& call, const protocol::VariableDescriptor& descriptor) {
  const ClientUse client = context_.use_client();
  client::PsConnections& connections = client->connections();
  // A ps fills the shard before it replies, so the timeout grows with the variable, by 1 s per 0.1 GB.
  const std::uint64_t bytes = descriptor.table ? 0 : descriptor.rows() * descriptor.row_bytes();
  const auto fill_time = std::chrono::milliseconds(bytes / 100'000);
  const auto timeout = context_.runtime().wait_timeout() + fill_time;
  std::vector<std::byte> location;
  connections.retry([&] {
    // Repeats the request to a restarted ps; creation is idempotent.
    transport::Peer& peer = connections.at(call.ps).peer();
    if (call.id && call.revivals != peer.revivals())
      connections.rpc().cancel(*std::exchange(call.id, std::nullopt));
    if (!call.id) call.id = connections.rpc().start(peer, transport::kCreateVariable, call.request);
    location = connections.rpc().wait(*std::exchange(call.id, std::nullopt), timeout,
                                      "create variable \"" + descriptor.name + "\"");
  });
  return from_bytes<protocol::ShardLocation>(location);
}

void ShardCreator::drop(const protocol::VariableDescriptor& descriptor) {
  ask_every_ps(*context_.use_client(), transport::kDropVariable, transport::as_bytes(descriptor.id),
               context_.runtime().wait_timeout(), "drop variable \"" + descriptor.name + "\"");
}

}  // namespace capstan::strategy
