// ps_server.hpp -- main loop of a ps: applies pushes, answers requests, sleeps when idle.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cluster/membership/coordinator_watch.hpp"
#include "cluster/runtime.hpp"
#include "protocol/failover.hpp"
#include "ps/durability/persistent_state.hpp"
#include "ps/durability/replica_follower.hpp"
#include "ps/durability/replication.hpp"
#include "ps/durability/shard_file_writer.hpp"
#include "ps/ingest/push_inbox.hpp"
#include "ps/ingest/ring_reader.hpp"
#include "ps/server/board.hpp"
#include "ps/server/ps_heartbeat.hpp"
#include "ps/server/row_sender.hpp"
#include "ps/shard/store.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::ps {

/// Connects all parts of a ps, so it is larger than other classes: each message and request involves several
/// parts. A part with its own state is a separate class, such as Replication.
///
/// Single-threaded. Polls while there is work, then sleeps in the kernel until a message or a doorbell
/// arrives. Polls for less time if other threads need its core.
class PsServer {
 public:
  /// `failover`: this rank was a spare and has become the ps (Runtime::become). Throws Error if the shards
  /// cannot be restored.
  explicit PsServer(std::shared_ptr<cluster::Runtime> runtime,
                    std::optional<protocol::FailoverRequest> failover = {});
  ~PsServer() { fabric_.remove_handlers(); }
  /// Size of the largest entry of a push.
  static std::uint64_t entry_bytes(const cluster::Runtime& runtime) {
    return protocol::largest_entry(runtime.settings().bytes("push-ring-bytes"));
  }
  static ClosureLedger::Capacity ledger_capacity(const cluster::Runtime& runtime) {
    return {.replicas = static_cast<std::size_t>(runtime.settings().integer("replicas")),
            .open = runtime.coordinator_may_return() ? ClosureLedger::kOpen : 0};
  }
  PsServer(const PsServer&) = delete;
  PsServer& operator=(const PsServer&) = delete;

  /// Serves until the coordinator ends the job, or fences this ps because another process has replaced it.
  /// Throws Error(unavailable) if the coordinator dies and is not restarted, or if the job failed, with the
  /// reason.
  void run();
  /// Runs this spare as the replica of the ps with the same index. Returns the coordinator's order to fail
  /// over, or nullopt when the job ends or the ps continues without this replica. Throws Error(unavailable)
  /// if the coordinator dies and is not restarted.
  std::optional<protocol::FailoverRequest> follow();
  /// Takes over the shards of a ps. Throws Error if they cannot be restored. REQUIRES: this rank has become
  /// the ps (Runtime::become).
  void fail_over(const protocol::FailoverRequest& failover);

 private:
  using Request = transport::RpcServer::Handler;
  /// Thrown to abort a request that must not be answered.
  struct RequestAborted {};

  void serve();
  void serve_requests();
  /// Serves a type of request that changes this ps and must be replicated. Requests that change nothing
  /// are served by rpc_.serve alone.
  void serve_replicated(std::uint16_t type, Request handler);
  void serve_fabric();
  /// Receives messages until `done`. Throws RequestAborted if this ps must stop.
  void receive_until(const std::function<bool()>& done);
  bool poll_replica();
  /// On the replica: executes a request in the same way as its ps.
  void replay(std::uint16_t type, int from, transport::Bytes request);
  void report(const transport::Message& message);
  void mark_dead(const protocol::WorkerDead& worker);
  void add_member(transport::Bytes member);
  /// Applies the complete entries of a dead rank, drops the rest and fences the rank.
  void close_rank(int rank);
  void count(std::uint32_t counter, std::uint64_t delta);
  std::unique_ptr<transport::Region> allocate_board();
  void recover();
  void undo_uncommitted_count();
  /// Returns true if this is not the process that was the ps at the start of the job.
  bool restarted() const { return incarnation_ > 0 || (persistent_ && persistent_->has_predecessor()); }
  void announce_restart();
  /// Sends the messages that a worker awaits before it connects: see WorkerServer::await_ps.
  void introduce(std::int32_t rank);
  void report_member_known(std::int32_t rank);
  void reconnect_coordinator();
  /// Returns the reason why this ps has to exit, usually the loss of the coordinator; empty while it may
  /// continue.
  const std::string& stop_reason();
  /// Returns true if this ps must stop serving.
  bool must_stop() { return fenced_ || !stop_reason().empty(); }
  bool poll_fabric();
  void drain_reads();
  void sleep();
  /// Returns true if the coordinator has declared the rank dead.
  bool is_lost(int rank) const { return runtime_->membership().is_lost(rank); }
  std::uint64_t max_ranks() const { return static_cast<std::uint64_t>(runtime_->table().capacity()); }
  transport::Peer& client(int rank) { return runtime_->data_peer(runtime_->member(rank)); }

  std::shared_ptr<cluster::Runtime> runtime_;
  transport::Fabric& fabric_;
  std::unique_ptr<PersistentState> persistent_;  // null: state is lost with this process
  std::unique_ptr<SharedRegions> regions_;       // null: memory is from `persistent_` or the fabric
  Board board_;
  std::uint32_t incarnation_ = 0;  // number of spares that have replaced the ps
  Store store_;
  Replication replication_;
  RingReader rings_;
  PushInbox inbox_;
  RowSender rows_;
  ShardFileWriter saver_;
  std::chrono::steady_clock::time_point save_began_{};
  transport::RpcServer rpc_;
  std::map<std::uint16_t, Request> replicated_requests_;  // handlers of replicated requests, by message type
  ReplicaFollower follower_;
  bool job_ended_ = false;
  bool fenced_ = false;
  cluster::CoordinatorWatch coordinator_;
  PsHeartbeat heartbeat_;
  std::string silence_reason_;  // set if the coordinator's heartbeat or consent is overdue
};

}  // namespace capstan::ps
