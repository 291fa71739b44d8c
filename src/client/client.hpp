// client.hpp -- the worker's side: lookup, pull, push and flush against the shards of all ps.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/ps_link.hpp"
#include "cluster/rpc.hpp"
#include "cluster/runtime.hpp"
#include "shard/descriptor.hpp"

namespace capstan::client {

/// Moves parameters of any dtype; `void*` are arrays of the descriptor's dtype. Belongs to the thread that
/// owns the rank's data fabric. Every call throws Error: out_of_range (an id that the variable does not have;
/// nothing was sent), unavailable (a ps is gone), deadline_exceeded.
class Client {
 public:
  explicit Client(std::shared_ptr<cluster::Runtime> runtime);
  ~Client();

  /// Row ids[i] of the variable into row i of `out`.
  void lookup(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids, void* out);
  /// Rows [first_row, first_row + rows).
  void pull(const shard::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
            void* out);
  /// Row i of `gradient` belongs to row ids[i]. Rows named twice are summed first. Returns when the values
  /// may be reused; `flush` tells when they have been applied.
  void push(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids,
            const void* gradient);
  /// A gradient for every row.
  void push_dense(const shard::VariableDescriptor& variable, const void* gradient);
  /// Returns when everything that this client has pushed has been applied.
  void flush();
  /// Sets rows; the optimizer and its slots are not touched.
  void assign(const shard::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
              const void* values);
  /// Adds to counter `index` of ps `ps` and returns what it was.
  std::uint64_t fetch_add(int ps, std::uint64_t index, std::uint64_t delta);

  /// For the strategy: calls to a ps that are not about rows.
  PsLink& link(int ps);
  cluster::RpcClient& rpc() noexcept { return rpc_; }
  cluster::Runtime& runtime() noexcept { return *runtime_; }

 private:
  struct Routed;  // the rows of one call that go to one shard
  /// Sorts the ids of a call by shard; the result lives until the next call.
  std::span<Routed> route(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids);
  void check_ids(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids) const;
  void push_unique(const shard::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                   const std::byte* gradient);

  std::shared_ptr<cluster::Runtime> runtime_;
  cluster::RpcClient rpc_;
  std::vector<std::unique_ptr<PsLink>> links_;  // by ps index, null until first used
  std::vector<Routed> routed_;
};

}  // namespace capstan::client
