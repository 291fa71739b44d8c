// client.hpp -- the worker's side: lookup, pull, push and flush against the shards of all ps.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capstan/variable.hpp"
#include "client/channel/gpu_rows.hpp"
#include "client/channel/ps_link.hpp"
#include "client/combine.hpp"
#include "client/remote_reads.hpp"
#include "client/route.hpp"
#include "cluster/runtime.hpp"
#include "protocol/descriptor.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::client {

/// Moves parameters of any dtype; `void*` are arrays of the descriptor's dtype. Belongs to the thread that
/// owns the rank's data fabric. Every call throws Error: out_of_range (an id that the variable does not have;
/// nothing was sent), unavailable (a ps is gone), deadline_exceeded.
class Client {
 public:
  /// Rows wanted: row ids[i] of the variable goes into row i of `out`. Without ids: `rows` rows from
  /// first_row on.
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
  /// A read under way; 0 when there was nothing to wait for.
  using Reading = RemoteReads::Id;

  explicit Client(std::shared_ptr<cluster::Runtime> runtime);
  ~Client();

  /// Throws Error(out_of_range) naming an id that the variable does not have, and its position.
  static void check(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids);

  /// The same for rows.
  static void check_rows(const protocol::VariableDescriptor& variable, std::uint64_t first_row,
                         std::uint64_t rows);

  /// Row ids[i] of the variable into row i of `out`.
  void lookup(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids, void* out,
              ReadMode mode = ReadMode::relaxed);
  /// Rows [first_row, first_row + rows).
  void pull(const protocol::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
            void* out, ReadMode mode = ReadMode::relaxed);
  /// Starts reads of several variables: one message to each ps that is not mapped. What is mapped is there
  /// on return. `out` must live until `finish` or `cancel`.
  Reading start(std::span<const Lookup> lookups, ReadMode mode = ReadMode::relaxed);
  bool ready(Reading reading);
  void finish(Reading reading);
  void cancel(Reading reading) noexcept { reads_.cancel(reading); }

  /// Row i of `gradient` belongs to row ids[i]. Rows named twice are summed first. Returns when the values
  /// may be reused; `flush` tells when they have been applied.
  void push(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
            const void* gradient);
  /// The same for several variables, shown to each ps together.
  void push(std::span<const Push> pushes);
  /// A gradient for every row, of which `arrival` may still wait for the last ones.
  void push_dense(const protocol::VariableDescriptor& variable, const void* gradient,
                  const Arrival* arrival = nullptr);
  /// `out` of a relaxed pull, and the gradient of a dense push, may be in a GPU's memory: an adapter reads
  /// and writes all shards of the variable, and UCX that memory.
  bool reaches_from_gpu(const protocol::VariableDescriptor& variable);
  /// Reads of a variable that lies in a GPU which the stream's GPU reaches, by its own kernels and in its
  /// order. False where it does not, and nothing has been done. `ids` may be reused on return. REQUIRES: ids
  /// that check() has let pass.
  bool lookup_on_gpu(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                     std::byte* out, const gpu::Stream& stream, gpu::Staging& staging);
  bool pull_on_gpu(const protocol::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
                   std::byte* out, const gpu::Stream& stream);
  /// The same of a push to such a variable: in an embedded cluster within the GPU, else by the ps's room for
  /// this rank there. Without ids dense. Waits until the stream has made the gradient, which may be reused on
  /// return. Throws Error(resource_exhausted), and then nothing has been pushed.
  bool push_on_gpu(const protocol::VariableDescriptor& variable,
                   std::optional<std::span<const std::int64_t>> ids, const std::byte* gradient,
                   const gpu::Stream& stream, gpu::Staging& staging);
  /// Such a gradient. REQUIRES: reaches_from_gpu.
  void push_dense_from_gpu(const protocol::VariableDescriptor& variable, const void* gradient);
  /// Returns when everything that this client has pushed has been applied.
  void flush();
  /// Does `op` to rows [first_row, first_row + rows), row i of `values` being the right-hand side of the i-th
  /// of them, after everything that this client has pushed. Returns when it has been done. No optimizer has a
  /// part in it.
  void update(const protocol::VariableDescriptor& variable, protocol::RowOp op, std::uint64_t first_row,
              std::uint64_t rows, const void* values);
  /// The same for the rows `ids`, in that order; one that is named twice is changed twice.
  void scatter(const protocol::VariableDescriptor& variable, protocol::RowOp op,
               std::span<const std::int64_t> ids, const void* values);
  /// Adds to counter `index` of ps `ps` and returns what it was.
  std::uint64_t fetch_add(int ps, std::uint64_t index, std::uint64_t delta);
  /// Adds to it in order with the pushes to that ps, and like them.
  void count(int ps, std::uint32_t index, std::uint64_t delta);
  /// What is pushed from now on is of this closure, and each of its pushes counts once, though it may have
  /// been begun before. {} for what is pushed outside of closures.
  void begin(const RunningClosure& closure);
  /// Pushes from now on are that replica's: those of several are numbered apart, since they come in any
  /// order.
  void push_as(int replica) noexcept { closure_.replica = static_cast<std::uint16_t>(replica); }
  /// A push that is left out, because of what it brings, has its number as well: a second run of the closure
  /// may bring something else.
  void leave_out_push() { number_push(); }
  /// After an error in a closure: true when a ps that it may have talked to has come back in the meantime, or
  /// comes back within --ps-wait. What the closure pushed there may be lost, and it is to be run again.
  bool ps_came_back();
  /// Does `read`, once more where a ps died and came back meanwhile.
  void retry(const std::function<void()>& read);

  /// Ends this rank's step of an update group and waits as its mode says; steps ended so far. `name` is for
  /// messages.
  std::uint64_t end_step(std::uint32_t group, const std::string& name);
  void leave(std::uint32_t group);

  /// For the strategy: calls to a ps that are not about rows.
  PsLink& link(int ps);
  /// The same, of a ps that lives, or has come back and nothing was on its way to it. Throws
  /// Error(unavailable).
  PsLink& living_link(int ps);
  /// How often a ps has come back with other memory, as far as this client has noticed.
  std::uint64_t moves() const noexcept { return moves_; }
  transport::RpcClient& rpc() noexcept { return rpc_; }
  cluster::Runtime& runtime() const noexcept { return *runtime_; }

 private:
  std::uint64_t returns() const;
  void take_returned(const transport::Message& message);
  const Route& route_of(const protocol::VariableDescriptor& variable);
  std::unique_ptr<Route>& cached_route(const protocol::VariableDescriptor& variable);
  void gather(const Route& route, const Lookup& lookup);
  void require_alive(const Route& route, std::span<const std::int64_t> ids);
  /// Runs `copy`, which reads the shard's mapped memory. False when it had to be consistent and writers left
  /// no pause in which to read.
  bool read_mapped(const ShardRoute& shard, ReadMode mode, const std::function<void()>& copy);
  void start_sparse(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote);
  void start_dense(const Lookup& lookup, ReadMode mode, std::vector<RemoteReads::Segment>& remote);
  void push_unique(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids,
                   const std::byte* gradient, bool more, protocol::RowOp op = protocol::RowOp::gradient);
  void push_one(const Push& push, bool more);
  void number_push();
  void push_all_rows(const protocol::VariableDescriptor& variable, const void* gradient,
                     const Arrival* arrival, bool on_gpu);

  const std::byte* values_on_gpu(const protocol::VariableDescriptor& variable, const ShardRoute& shard,
                                 int gpu);
  GpuRows& gpu_rows(int gpu);
  void let_go_of_gpus() noexcept;
  std::vector<PushRows> pushes_from_gpu(const protocol::VariableDescriptor& variable,
                                        std::optional<std::span<const std::int64_t>> ids,
                                        const std::byte* gradient);
  bool may_push_on_gpu(const protocol::VariableDescriptor& variable, std::span<const PushRows> pushes,
                       std::optional<std::span<const std::int64_t>> ids, int gpu);

  /// What this rank knows of an update group that it takes part in.
  struct Pace {
    protocol::GroupMode mode = protocol::GroupMode::asynchronous;
    std::uint64_t bound = 0;
    std::uint64_t clock = 0;  // steps that this rank has ended
  };
  Pace& pace_of(std::uint32_t group);
  std::string who_is_behind(std::uint32_t group);

  std::shared_ptr<cluster::Runtime> runtime_;
  cluster::Traffic& traffic_;
  transport::RpcClient rpc_;
  RemoteReads reads_;
  RunningClosure closure_;
  Returned returned_;
  struct Process {
    std::uint32_t life = 0;
    std::int64_t pid = 0;
  };
  std::map<int, Process> processes_;            // of ps that have come back, by rank
  std::vector<std::uint32_t> calls_;            // of the closure, by replica
  std::uint64_t returns_ = 0;                   // of all links, when the closure began
  std::uint64_t moves_ = 0;                     // of all links
  std::vector<std::unique_ptr<PsLink>> links_;  // by ps index, null until first used
  std::vector<std::unique_ptr<Route>> routes_;  // by variable id, null until first used
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<Route>> part_routes_;  // by id and part
  ByShard by_shard_;
  Combiner combiner_;
  std::map<std::uint32_t, Pace> paces_;  // by group
  std::map<int, GpuRows> gpu_rows_;      // by GPU
  std::uint64_t gpu_rows_of_ = 0;        // moves, when they were made
};

}  // namespace capstan::client
