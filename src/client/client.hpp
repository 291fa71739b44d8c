// client.hpp -- the worker's side of lookup, pull, push and flush.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capstan/variable.hpp"
#include "client/call_trace.hpp"
#include "client/combine.hpp"
#include "client/gpu_client.hpp"
#include "client/gradient_sums.hpp"
#include "client/ps_connections.hpp"
#include "client/push_numbering.hpp"
#include "client/remote_reads.hpp"
#include "client/routes.hpp"
#include "client/step_clock.hpp"
#include "client/table_client.hpp"
#include "cluster/runtime.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::client {

/// Reads and pushes rows of variables; `void*` are arrays of the descriptor's dtype. Used by the thread
/// that owns the rank's data fabric. Every call throws Error: out_of_range (an id is not a row of the
/// variable; nothing was sent), unavailable (a ps is dead), deadline_exceeded.
class Client {
 public:
  /// Copies row ids[i] of the variable to row i of `out`; without ids, rows [first_row, first_row + rows).
  /// For a dynamic table, ids are keys.
  struct Lookup {
    const protocol::VariableDescriptor* variable = nullptr;
    std::span<const std::int64_t> ids = {};
    void* out = nullptr;
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
    std::optional<MissingKeys> missing = {};  // nullopt: the policy of the table
  };
  /// Row i of `gradient` belongs to row ids[i].
  struct Push {
    const protocol::VariableDescriptor* variable = nullptr;
    std::span<const std::int64_t> ids;
    const void* gradient = nullptr;
  };
  /// A read in flight; 0 if there is nothing to wait for.
  using Reading = RemoteReads::Id;

  explicit Client(std::shared_ptr<cluster::Runtime> runtime);

  /// Copies row ids[i] of the variable to row i of `out`.
  void lookup(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids, void* out,
              ReadMode mode = ReadMode::relaxed);
  /// Copies rows [first_row, first_row + rows) into `out`.
  void pull(const protocol::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
            void* out, ReadMode mode = ReadMode::relaxed);
  /// Returns the rows of a variable with one shard, in the memory of its ps, which may change them at any
  /// time. The memory stays mapped while the pointer exists, even after the ps has ended. Throws
  /// Error(failed_precondition) if the variable has several shards, or this rank cannot map the shard.
  std::shared_ptr<const std::byte> mapped(const protocol::VariableDescriptor& variable);
  /// Starts reads of several variables, with one message to each ps that is not mapped. Rows of mapped
  /// shards are copied before it returns. `out` must remain valid until `finish` or `cancel`.
  Reading start(std::span<const Lookup> lookups, ReadMode mode = ReadMode::relaxed);
  bool ready(Reading reading);
  void finish(Reading reading);
  void cancel(Reading reading) noexcept { reads_.cancel(reading); }
  /// Returns true if `finish` would block for some read. Does not progress the fabric.
  bool reads_in_flight() const { return reads_.in_flight(); }

  /// Pushes a gradient whose row i belongs to row ids[i]. Rows with equal ids are summed first. The caller
  /// may reuse the gradient on return; `flush` waits until it has been applied.
  void push(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
            const void* gradient);
  /// Pushes gradients of several variables, and makes them visible to each ps together.
  void push(std::span<const Push> pushes);
  /// Pushes a gradient for every row. `arrival(n)`, if given, blocks until the first n bytes of the gradient
  /// have been copied to it.
  void push_dense(const protocol::VariableDescriptor& variable, const void* gradient,
                  const Arrival* arrival = nullptr);
  /// Pushes a gradient for every row from GPU memory. REQUIRES: reaches_from_gpu(variable).
  void push_dense_from_gpu(const protocol::VariableDescriptor& variable, const void* gradient);
  /// Returns true if `out` of a relaxed pull and the gradient of push_dense_from_gpu may be in GPU memory.
  /// This needs RMA to all shards of the variable, by an adapter that can access that memory. A pull of int8
  /// rows may not: the ps converts them.
  bool reaches_from_gpu(const protocol::VariableDescriptor& variable);
  /// Reads and pushes between the GPUs of this process and of ps.
  GpuClient& gpu() noexcept { return gpu_; }
  /// Looks up rows of a dynamic table as with MissingKeys::initial, and adds the keys that are missing. Does
  /// not wait until they have been added.
  void lookup_or_insert(const protocol::VariableDescriptor& table, std::span<const std::int64_t> keys,
                        void* out);
  /// For other calls on dynamic tables.
  TableClient& tables() noexcept { return tables_; }
  /// Blocks until all pushes of this client have been applied.
  void flush();
  /// Positions after the pushes of this client, by ps.
  using PushPositions = std::vector<std::pair<PsConnection*, PsConnection::PushPosition>>;
  /// Returns the positions on the ps that have shards of the variable.
  PushPositions pushed(const protocol::VariableDescriptor& variable);
  /// Returns true once `wait` would return or throw, or a ps is dead. See PsConnection::applied.
  bool applied(const PushPositions& positions);
  /// Blocks until everything before the positions has been applied.
  void wait(const PushPositions& positions);
  /// Applies `op` to rows [first_row, first_row + rows) with the rows of `values` as operands, after all
  /// pushes of this client. Returns once it has been applied. Bypasses the optimizer.
  void update(const protocol::VariableDescriptor& variable, protocol::RowOp op, std::uint64_t first_row,
              std::uint64_t rows, const void* values);
  /// Applies `op` to the rows `ids`, in this order; a row that occurs twice is changed twice.
  void scatter(const protocol::VariableDescriptor& variable, protocol::RowOp op,
               std::span<const std::int64_t> ids, const void* values);
  /// Sets the rows `ids`. In a closure that runs again, also applies what an earlier run may have applied:
  /// for rows whose values do not depend on the run.
  void set_rows_in_every_run(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                             const void* values);
  /// Sets the learning rate of a variable, after all pushes of this client. Returns once it has been set on
  /// every ps. REQUIRES: the optimizer can use the rate.
  void set_learning_rate(const protocol::VariableDescriptor& variable, double rate);
  /// Adds to counter `index` of ps `ps` and returns its previous value.
  std::uint64_t fetch_add(int ps, std::uint64_t index, std::uint64_t delta);
  /// Adds to a counter, in order with the pushes to that ps. Takes effect once, even if a closure runs
  /// again.
  void count(int ps, std::uint32_t index, std::uint64_t delta);

  /// Assigns the following pushes to a closure, or to none ({}). Each push of a closure counts once, even
  /// if the closure runs again.
  void begin(const RunningClosure& closure);
  /// Assigns the following pushes to a replica of the closure.
  void push_as(int replica) noexcept { numbering_.push_as(replica); }
  /// Uses up the number of a push that is skipped because of NaN or infinity. If the closure runs again and
  /// sends this push, later pushes then have the same numbers as in the first run.
  void skip_push() { numbering_.next_push(); }
  /// Call after an error in a closure. Waits for every dead ps; returns true if any ps was restarted since
  /// begin(). The closure must run again then, because its pushes to that ps may be lost.
  bool ps_restarted();

  /// Sets whether closures combine pushes to variables with `combine_pushes`, and returns the previous
  /// setting. Off where the pushes of two runs of a closure may differ in order or number. Sends the sums
  /// first.
  bool combine_pushes(bool combine);
  /// Sends the sums of combined pushes.
  void send_sums();

  /// As StepClock::end_step and StepClock::leave, after the pushes so far.
  std::uint64_t end_step(std::uint32_t group, const std::string& name);
  void leave(std::uint32_t group);
  CallTrace& trace() noexcept { return trace_; }
  /// For other calls to a ps.
  PsConnections& connections() noexcept { return connections_; }
  cluster::Runtime& runtime() const noexcept { return *runtime_; }

 private:
  void gather(const Route& route, const Lookup& lookup);
  void require_alive(const Route& route, std::span<const std::int64_t> ids);
  void start_sparse(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote);
  void start_dense(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote);
  void push_unique(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                   const std::byte* gradient, bool more, protocol::RowOp op = protocol::RowOp::gradient,
                   std::span<const std::uint32_t> order = {});
  void push_one(const Push& push, bool more);
  void push_combined(const Push& push, bool more);
  void push_sums(const protocol::VariableDescriptor& variable, GradientSums& sums, bool more);
  void push_all_rows(const protocol::VariableDescriptor& variable, const void* gradient,
                     const Arrival* arrival, bool on_gpu);

  std::shared_ptr<cluster::Runtime> runtime_;
  cluster::Traffic& traffic_;
  PsConnections connections_;
  RemoteReads reads_;
  PushNumbering numbering_;
  CallTrace trace_;
  std::uint64_t restarts_ = 0;  // number of restarts of all ps before begin()
  Routes routes_;
  ByShard by_shard_;
  Combiner combiner_;
  struct Combined {
    protocol::VariableDescriptor variable;
    GradientSums sums;
  };
  bool combines_pushes_ = true;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Combined> combined_;  // by id and part of the variable
  std::vector<std::uint32_t> positions_;                                  // of the rows of one shard
  StepClock steps_;
  GpuClient gpu_;
  TableClient tables_;
};

}  // namespace capstan::client
