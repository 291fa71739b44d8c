// client_on_gpu.cpp -- rows that do not leave the GPU: shards and the caller's memory are both there.
#include <algorithm>
#include <vector>

#include "client/client.hpp"

namespace capstan::client {

GpuReads& Client::gpu_reads(int gpu) {
  if (gpu_reads_of_ != moves_) {
    for (auto& [number, reads] : gpu_reads_) reads.forget();
    gpu_reads_of_ = moves_;
  }
  return gpu_reads_.try_emplace(gpu, gpu).first->second;
}

/// Null where kernels of that GPU cannot read them.
const std::byte* Client::values_on_gpu(const shard::VariableDescriptor& variable, const ShardRoute& shard,
                                       int gpu) {
  if (shard.place.region != shard::kNoRegion) return nullptr;
  if (runtime_->member(Role::ps, shard.place.ps).host != runtime_->self().host) return nullptr;
  return gpu_reads(gpu).values(variable.id, shard.number,
                               [&] { return shard.link->gpu_key(variable.id, shard.number); });
}

bool Client::lookup_on_gpu(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                           std::byte* out, const device::Stream& stream, device::Staging& staging) {
  bool done = false;
  retry([&] {
    const auto& shards = route_of(variable).shards;
    std::vector<GpuReads::Part> table;
    for (const ShardRoute& shard : shards) {
      if (shard.place.rows == 0) continue;
      const std::byte* values = values_on_gpu(variable, shard, stream.device());
      if (values == nullptr) return;
      table.push_back({values, shard.place.first_row, shard.place.rows});
    }
    gpu_reads(stream.device()).gather(stream, staging, table, variable.row_bytes(), ids, out);
    for (const ShardRoute& shard : shards) shard.link->require_alive();
    done = true;
  });
  if (done) traffic_.pull.count(ids.size(), ids.size() * variable.row_bytes());
  return done;
}

bool Client::pull_on_gpu(const shard::VariableDescriptor& variable, std::uint64_t first_row,
                         std::uint64_t rows, std::byte* out, const device::Stream& stream) {
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
      device::copy(stream, out + (begin - first_row) * row_bytes,
                   values(shard) + (begin - shard.place.first_row) * row_bytes, (end - begin) * row_bytes);
      shard.link->require_alive();
    }
    done = true;
  });
  if (done) traffic_.pull.count(rows, rows * row_bytes);
  return done;
}

bool Client::push_on_gpu(const shard::VariableDescriptor& variable,
                         std::optional<std::span<const std::int64_t>> ids, const std::byte* gradient,
                         const device::Stream& stream) {
  const std::uint64_t rows = ids ? ids->size() : variable.rows();
  const Route& route = route_of(variable);
  if (route.shards.size() != 1 || rows == 0 || variable.row_bytes() == 0) return false;
  if (ids) check(variable, *ids);
  device::Event made(stream.device());
  made.record(stream);
  PushRows push{
      variable.id, 0,       variable.row_bytes(), {}, ids.value_or(std::span<const std::int64_t>()), {}, 0,
      rows,        gradient};
  if (!route.shards[0].link->push_from_gpu(push, stream.device(), made)) return false;
  traffic_.push.count(rows, rows * variable.row_bytes());
  return true;
}

}  // namespace capstan::client
