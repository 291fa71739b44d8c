// gpu_client.cpp -- one gather, copy or push per shard.
#include "client/gpu_client.hpp"

#include <algorithm>

#include "capstan/cancellation.hpp"
#include "client/checks.hpp"

namespace capstan::client {

/// Returns nullptr if kernels of that GPU cannot read the shard.
const std::byte* GpuClient::values(const protocol::VariableDescriptor& variable, const ShardRoute& shard,
                                   int gpu) {
  if (shard.in_host_memory()) return nullptr;
  if (runtime_.member(Role::ps, shard.location.ps).host != runtime_.self().host) return nullptr;
  return shard.connection->gpu_values(kernels(gpu), variable.id, shard.number);
}

bool GpuClient::lookup(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                       std::byte* out, const gpu::Stream& stream, gpu::Staging& staging) {
  throw_if_cancelled();
  bool done = false;
  connections_.retry([&] {
    const auto& shards = routes_.of(variable).shards;
    std::vector<GpuRows::Part> table;
    for (const ShardRoute& shard : shards) {
      if (shard.location.rows == 0) continue;
      const std::byte* const first = values(variable, shard, stream.device());
      if (first == nullptr) return;
      table.push_back({first, shard.location.first_row, shard.location.rows});
    }
    kernels(stream.device()).gather(stream, staging, table, variable.row_bytes(), ids, out);
    for (const ShardRoute& shard : shards) shard.connection->require_alive();
    done = true;
  });
  if (done) runtime_.traffic().pull.count(ids.size(), ids.size() * variable.row_bytes());
  return done;
}

bool GpuClient::pull(const protocol::VariableDescriptor& variable, std::uint64_t first_row,
                     std::uint64_t rows, std::byte* out, const gpu::Stream& stream) {
  throw_if_cancelled();
  check_rows(variable, first_row, rows);
  const std::uint64_t row_bytes = variable.row_bytes();
  bool done = false;
  connections_.retry([&] {
    const auto& shards = routes_.of(variable).shards;
    const auto values_of = [&](const ShardRoute& shard) { return values(variable, shard, stream.device()); };
    const auto is_mapped = [&](const ShardRoute& shard) { return values_of(shard) != nullptr; };
    if (!std::all_of(shards.begin(), shards.end(), is_mapped)) return;
    for (const ShardRoute& shard : shards) {
      const std::uint64_t shard_begin = shard.location.first_row;
      const std::uint64_t begin = std::max(first_row, shard_begin);
      const std::uint64_t end = std::min(first_row + rows, shard_begin + shard.location.rows);
      if (begin >= end) continue;
      kernels(stream.device())
          .copy(stream, values_of(shard) + (begin - shard_begin) * row_bytes, (end - begin) * row_bytes,
                out + (begin - first_row) * row_bytes);
      shard.connection->require_alive();
    }
    done = true;
  });
  if (done) runtime_.traffic().pull.count(rows, rows * row_bytes);
  return done;
}

/// Returns one push for each shard with rows of the gradient. Sparse pushes refer to `by_shard_`.
std::vector<PushRows> GpuClient::split(const protocol::VariableDescriptor& variable, const Ids& ids,
                                       const std::byte* gradient) {
  const std::uint64_t row_bytes = variable.row_bytes();
  const Route& route = routes_.of(variable);
  if (ids && route.shards.size() == 1)
    return {{.variable = variable.id,
             .row_bytes = row_bytes,
             .ids = *ids,
             .count = ids->size(),
             .gradient = gradient}};
  if (ids) by_shard_.sort(route, *ids);
  std::vector<PushRows> pushes;
  for (const ShardRoute& shard : route.shards) {
    PushRows push;
    push.variable = variable.id;
    push.shard = shard.number;
    push.row_bytes = row_bytes;
    if (ids) {
      push.rows = by_shard_.rows(shard.number);
      push.order = by_shard_.order(shard.number);
      push.count = push.rows.size();
      push.gradient = gradient;
    } else {
      push.count = shard.location.rows;
      push.gradient = gradient + shard.location.first_row * row_bytes;
    }
    if (push.count != 0) pushes.push_back(push);
  }
  return pushes;
}

/// Returns true if every push can take its gradient from the memory of `gpu`.
bool GpuClient::reserve(const protocol::VariableDescriptor& variable, std::span<const PushRows> pushes,
                        const Ids& ids, int gpu) {
  const auto& shards = routes_.of(variable).shards;
  const bool in_process = runtime_.in_process();
  const bool reserved = std::all_of(pushes.begin(), pushes.end(), [&](const PushRows& push) {
    const ShardRoute& shard = shards[push.shard];
    // Kernels that cannot read the GPU of a shard cannot write to it either.
    if (!in_process && values(variable, shard, gpu) == nullptr) return false;
    GpuPushChannel* const channel = shard.connection->gpu_pushes();
    return channel != nullptr && channel->reserve(push, gpu);
  });
  // Between processes a push may be several entries; a duplicate row in two of them would be updated twice.
  const bool may_repeat = in_process || !ids || variable.optimizer.kind == OptimizerKind::sgd;
  return reserved && (may_repeat || combiner_.all_different(variable.rows(), *ids));
}

bool GpuClient::push(const protocol::VariableDescriptor& variable, Ids ids, const std::byte* gradient,
                     const gpu::Stream& stream, gpu::Staging& staging) {
  throw_if_cancelled();
  const std::uint64_t rows = ids ? ids->size() : variable.rows();
  const std::uint64_t row_bytes = variable.row_bytes();
  if (rows == 0 || row_bytes == 0 || variable.group != 0 || variable.part != 0) return false;
  if (ids) check_ids(variable, *ids);
  const int gpu = stream.device();
  const std::vector<PushRows> pushes = split(variable, ids, gradient);
  if (!reserve(variable, pushes, ids, gpu)) return false;
  numbering_.next_push();
  const bool sorted = ids && routes_.of(variable).shards.size() > 1;
  const auto order = sorted ? by_shard_.order() : std::span<const std::uint32_t>();
  GpuGradient source(stream, staging, kernels(gpu), gradient, rows, row_bytes, order);
  if (runtime_.in_process()) source.reserve();
  for (const PushRows& push : pushes) {
    routes_.of(variable).shards[push.shard].connection->gpu_pushes()->push(push, numbering_, source);
  }
  runtime_.traffic().push.count(rows, rows * row_bytes);
  return true;
}

}  // namespace capstan::client
