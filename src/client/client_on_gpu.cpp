// client_on_gpu.cpp -- rows that do not leave the GPU: shards and the caller's memory are both there.
#include <algorithm>
#include <vector>

#include "base/log.hpp"
#include "capstan/cancellation.hpp"
#include "client/client.hpp"

namespace capstan::client {

/// What a dead ps had in its GPU is free for a spare when the last one has let go of it.
void Client::let_go_of_gpus() noexcept {
  try {
    for (auto& [number, rows] : gpu_rows_) rows.forget();
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
}

GpuRows& Client::gpu_rows(int gpu) {
  if (gpu_rows_of_ != moves_) {
    for (auto& [number, rows] : gpu_rows_) rows.forget();
    gpu_rows_of_ = moves_;
  }
  return gpu_rows_.try_emplace(gpu, gpu).first->second;
}

/// Null where kernels of that GPU cannot read them.
const std::byte* Client::values_on_gpu(const protocol::VariableDescriptor& variable, const ShardRoute& shard,
                                       int gpu) {
  if (shard.place.region != protocol::kNoRegion) return nullptr;
  if (runtime_->member(Role::ps, shard.place.ps).host != runtime_->self().host) return nullptr;
  return gpu_rows(gpu).values(variable.id, shard.number,
                              [&] { return shard.link->gpu_key(variable.id, shard.number); });
}

bool Client::lookup_on_gpu(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                           std::byte* out, const gpu::Stream& stream, gpu::Staging& staging) {
  throw_if_cancelled();
  bool done = false;
  retry([&] {
    const auto& shards = route_of(variable).shards;
    std::vector<GpuRows::Part> table;
    for (const ShardRoute& shard : shards) {
      if (shard.place.rows == 0) continue;
      const std::byte* values = values_on_gpu(variable, shard, stream.device());
      if (values == nullptr) return;
      table.push_back({values, shard.place.first_row, shard.place.rows});
    }
    gpu_rows(stream.device()).gather(stream, staging, table, variable.row_bytes(), ids, out);
    for (const ShardRoute& shard : shards) shard.link->require_alive();
    done = true;
  });
  if (done) traffic_.pull.count(ids.size(), ids.size() * variable.row_bytes());
  return done;
}

bool Client::pull_on_gpu(const protocol::VariableDescriptor& variable, std::uint64_t first_row,
                         std::uint64_t rows, std::byte* out, const gpu::Stream& stream) {
  throw_if_cancelled();
  check_rows(variable, first_row, rows);
  const std::uint64_t row_bytes = variable.row_bytes();
  bool done = false;
  retry([&] {
    const auto& shards = route_of(variable).shards;
    const auto values = [&](const ShardRoute& shard) {
      return values_on_gpu(variable, shard, stream.device());
    };
    if (!std::all_of(shards.begin(), shards.end(), values)) return;
    for (const ShardRoute& shard : shards) {
      const std::uint64_t begin = std::max(first_row, shard.place.first_row);
      const std::uint64_t end = std::min(first_row + rows, shard.place.first_row + shard.place.rows);
      if (begin >= end) continue;
      gpu_rows(stream.device())
          .copy(stream, values(shard) + (begin - shard.place.first_row) * row_bytes,
                (end - begin) * row_bytes, out + (begin - first_row) * row_bytes);
      shard.link->require_alive();
    }
    done = true;
  });
  if (done) traffic_.pull.count(rows, rows * row_bytes);
  return done;
}

/// One push to each shard that has a part in it; those of a sparse one as `by_shard_` has sorted them.
std::vector<PushRows> Client::pushes_from_gpu(const protocol::VariableDescriptor& variable,
                                              std::optional<std::span<const std::int64_t>> ids,
                                              const std::byte* gradient) {
  const std::uint64_t row_bytes = variable.row_bytes();
  const Route& route = route_of(variable);
  if (ids && route.shards.size() == 1)
    return {{variable.id, 0, row_bytes, {}, *ids, {}, 0, ids->size(), gradient}};
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
      push.count = shard.place.rows;
      push.gradient = gradient + shard.place.first_row * row_bytes;
    }
    if (push.count != 0) pushes.push_back(push);
  }
  return pushes;
}

bool Client::may_push_on_gpu(const protocol::VariableDescriptor& variable, std::span<const PushRows> pushes,
                             std::optional<std::span<const std::int64_t>> ids, int gpu) {
  const auto& shards = route_of(variable).shards;
  if (runtime_->in_process()) {
    return std::all_of(pushes.begin(), pushes.end(), [&](const PushRows& push) {
      return shards[push.shard].link->reserve_from_gpu(push, gpu);
    });
  }
  const bool rooms = std::all_of(pushes.begin(), pushes.end(), [&](const PushRows& push) {
    return values_on_gpu(variable, shards[push.shard], gpu) != nullptr &&
           shards[push.shard].link->has_room_on_gpu(push, gpu);
  });
  // A push goes there in parts, and a row that two of them name would count twice.
  const bool twice_is_once = !ids || variable.optimizer.kind == OptimizerKind::sgd;
  return rooms && (twice_is_once || combiner_.all_different(variable.rows(), *ids));
}

bool Client::push_on_gpu(const protocol::VariableDescriptor& variable,
                         std::optional<std::span<const std::int64_t>> ids, const std::byte* gradient,
                         const gpu::Stream& stream, gpu::Staging& staging) {
  throw_if_cancelled();
  const std::uint64_t rows = ids ? ids->size() : variable.rows();
  const std::uint64_t row_bytes = variable.row_bytes();
  if (rows == 0 || row_bytes == 0 || variable.group != 0 || variable.part != 0) return false;
  if (ids) check(variable, *ids);
  const int gpu = stream.device();
  const std::vector<PushRows> pushes = pushes_from_gpu(variable, ids, gradient);
  if (!may_push_on_gpu(variable, pushes, ids, gpu)) return false;
  number_push();
  GpuRows& there = gpu_rows(gpu);
  const bool sorted = ids && route_of(variable).shards.size() > 1;
  if (sorted) there.name(stream, staging, by_shard_.order());
  gpu::Event made(gpu);
  const auto put = [&](const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to) {
    if (sorted) {
      there.take(stream, {gradient, 0, rows}, row_bytes, by_shard_.first(push.shard) + first, count, to);
    } else {
      gpu::copy(stream, to, push.gradient + first * row_bytes, count * row_bytes);
    }
    made.record(stream);
  };
  const bool embedded = runtime_->in_process();
  std::byte* const taken = embedded && sorted ? there.scratch(rows * row_bytes) : nullptr;
  for (PushRows push : pushes) {
    PsLink& link = *route_of(variable).shards[push.shard].link;
    if (!embedded) {
      link.push_by_room(push, gpu, [&](std::uint64_t first, std::uint64_t count, std::byte* to) {
        put(push, first, count, to);
        made.wait();
      });
      continue;
    }
    if (sorted) {
      push.gradient = taken + by_shard_.first(push.shard) * row_bytes;
      put(push, 0, push.count, taken + by_shard_.first(push.shard) * row_bytes);
    } else {
      made.record(stream);
    }
    link.push_from_gpu(push, made);
  }
  traffic_.push.count(rows, rows * row_bytes);
  return true;
}

}  // namespace capstan::client
