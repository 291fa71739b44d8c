// client.hpp -- the worker's side: lookup, pull, push and flush against the shards of all ps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capstan/variable.hpp"
#include "client/combine.hpp"
#include "client/gpu_client.hpp"
#include "client/ps_connections.hpp"
#include "client/push_numbering.hpp"
#include "client/remote_reads.hpp"
#include "client/routes.hpp"
#include "client/step_clock.hpp"
#include "cluster/runtime.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::client {

/// Moves parameters of any dtype; `void*` are arrays of the descriptor's dtype. Belongs to the thread that
/// owns the rank's data fabric. Every call throws Error: out_of_range (an id that the variable does not have;
/// nothing was sent), unavailable (a ps is dead), deadline_exceeded.
class Client {
 public:
  /// Row ids[i] of the variable is copied into row i of `out`. Without ids: `rows` rows from first_row on.
  struct Lookup {
    const protocol::VariableDescriptor* variable = nullptr;
    std::span<const std::int64_t> ids;
    void* out = nullptr;
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
  };
  /// Row i of `gradient` belongs to row ids[i].
  struct Push {
    const protocol::VariableDescriptor* variable = nullptr;
    std::span<const std::int64_t> ids;
    const void* gradient = nullptr;
  };
  /// A read in flight; 0 when there was nothing to wait for.
  using Reading = RemoteReads::Id;

  explicit Client(std::shared_ptr<cluster::Runtime> runtime);

  /// Copies row ids[i] of the variable into row i of `out`.
  void lookup(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids, void* out,
              ReadMode mode = ReadMode::relaxed);
  /// Copies rows [first_row, first_row + rows) into `out`.
  void pull(const protocol::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
            void* out, ReadMode mode = ReadMode::relaxed);
  /// Starts reads of several variables, with one message to each ps that is not mapped. Rows of mapped shards
  /// have been copied on return. `out` must live until `finish` or `cancel`.
  Reading start(std::span<const Lookup> lookups, ReadMode mode = ReadMode::relaxed);
  bool ready(Reading reading);
  void finish(Reading reading);
  void cancel(Reading reading) noexcept { reads_.cancel(reading); }

  /// Row i of `gradient` belongs to row ids[i]. Rows that are named twice are summed first. The values may be
  /// reused on return; `flush` waits until they have been applied.
  void push(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
            const void* gradient);
  /// The same for several variables, made visible to each ps together.
  void push(std::span<const Push> pushes);
  /// Pushes a gradient for every row; `arrival` blocks until its first bytes are there.
  void push_dense(const protocol::VariableDescriptor& variable, const void* gradient,
                  const Arrival* arrival = nullptr);
  /// Pushes such a gradient from a GPU's memory. REQUIRES: reaches_from_gpu.
  void push_dense_from_gpu(const protocol::VariableDescriptor& variable, const void* gradient);
  /// Returns true if `out` of a relaxed pull, and the gradient of push_dense_from_gpu, may be in a GPU's
  /// memory: an adapter accesses all shards of the variable, and UCX reaches that memory.
  bool reaches_from_gpu(const protocol::VariableDescriptor& variable);
  /// Reads and pushes between this process's GPUs and a ps's.
  GpuClient& gpu() noexcept { return gpu_; }
  /// Blocks until everything that this client has pushed has been applied.
  void flush();
  /// Positions behind the pushes of this client, by ps.
  using PushPositions = std::vector<std::pair<PsConnection*, PsConnection::PushPosition>>;
  /// Returns those on the ps with shards of the variable.
  PushPositions pushed(const protocol::VariableDescriptor& variable);
  /// Returns true once `wait` would return or throw, or a ps is dead. See PsConnection::applied.
  bool applied(const PushPositions& positions);
  /// Blocks until everything before the positions has been applied.
  void wait(const PushPositions& positions);
  /// Applies `op` to rows [first_row, first_row + rows), with row i of `values` as the right-hand side of the
  /// i-th of them, after everything that this client has pushed. Returns when it has been applied. The
  /// optimizer is not involved.
  void update(const protocol::VariableDescriptor& variable, protocol::RowOp op, std::uint64_t first_row,
              std::uint64_t rows, const void* values);
  /// The same for the rows `ids`, in that order; a row that is named twice is changed twice.
  void scatter(const protocol::VariableDescriptor& variable, protocol::RowOp op,
               std::span<const std::int64_t> ids, const void* values);
  /// Sets the learning rate of a variable, after everything that this client has pushed. Returns when it has
  /// been set on every ps. REQUIRES: the optimizer can use the rate.
  void set_learning_rate(const protocol::VariableDescriptor& variable, double rate);
  /// Adds to counter `index` of ps `ps` and returns its previous value.
  std::uint64_t fetch_add(int ps, std::uint64_t index, std::uint64_t delta);
  /// Adds to a counter in order with the pushes to that ps, and counted once like them.
  void count(int ps, std::uint32_t index, std::uint64_t delta);

  /// Assigns the pushes that follow to a closure, {} to none. Each push of a closure counts once, though the
  /// closure may run again.
  void begin(const RunningClosure& closure);
  /// Assigns the pushes that follow to a replica of the closure.
  void push_as(int replica) noexcept { numbering_.push_as(replica); }
  /// Numbers a push that is skipped because of its values: a second run of the closure may send it.
  void skip_push() { numbering_.next_push(); }
  /// After an error in a closure: waits for every dead ps, and returns true if any was restarted since
  /// begin(). What the closure pushed there may be lost, so it must run again.
  bool ps_restarted();

  /// Steps of update groups that this rank takes part in.
  StepClock& steps() noexcept { return steps_; }
  /// For calls to a ps that are not about rows.
  PsConnections& connections() noexcept { return connections_; }
  cluster::Runtime& runtime() const noexcept { return *runtime_; }

 private:
  void gather(const Route& route, const Lookup& lookup);
  void require_alive(const Route& route, std::span<const std::int64_t> ids);
  /// Runs `copy`, which reads the shard's mapped memory. Returns false if the read had to be consistent and
  /// writers left no pause for it.
  bool read_mapped(const ShardRoute& shard, ReadMode mode, const std::function<void()>& copy);
  void start_sparse(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote);
  void start_dense(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote);
  void push_unique(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                   const std::byte* gradient, bool more, protocol::RowOp op = protocol::RowOp::gradient);
  void push_one(const Push& push, bool more);
  void push_all_rows(const protocol::VariableDescriptor& variable, const void* gradient,
                     const Arrival* arrival, bool on_gpu);

  std::shared_ptr<cluster::Runtime> runtime_;
  cluster::Traffic& traffic_;
  PsConnections connections_;
  RemoteReads reads_;
  PushNumbering numbering_;
  std::uint64_t restarts_ = 0;  // of all ps, when the closure began
  Routes routes_;
  ByShard by_shard_;
  Combiner combiner_;
  StepClock steps_;
  GpuClient gpu_;
};

}  // namespace capstan::client
