// ps_server.hpp -- the loop of a ps: applies pushes, answers requests, sleeps when idle.
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
#include "ps/durability/replica_inbox.hpp"
#include "ps/durability/replica_stream.hpp"
#include "ps/durability/shard_file_writer.hpp"
#include "ps/ingest/push_inbox.hpp"
#include "ps/ingest/ring_reader.hpp"
#include "ps/server/ps_heartbeat.hpp"
#include "ps/server/row_sender.hpp"
#include "ps/shard/store.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::ps {

/// Single-threaded. Polls while there is work, then sleeps in the kernel until a message or a doorbell
/// arrives. It polls for less time before it sleeps if other threads need its core.
class PsServer {
 public:
  /// `failover`: this rank was a spare and has become the ps (Runtime::become). Throws Error if the shards
  /// cannot be restored.
  explicit PsServer(std::shared_ptr<cluster::Runtime> runtime,
                    std::optional<protocol::FailoverRequest> failover = {});
  ~PsServer() { fabric_.remove_handlers(); }
  /// Size of the largest entry of a push.
  static std::uint64_t entry_bytes(const cluster::Runtime& runtime) {
    return runtime.settings().bytes("push-ring-bytes") / 4;
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
  /// Follows the ps with this spare's index as its replica, until the coordinator orders a failover, which it
  /// returns, or ends the job, which it returns nothing for.
  std::optional<protocol::FailoverRequest> follow();
  /// Takes over the shards of a ps. Throws Error if they cannot be restored. REQUIRES: this rank has become
  /// the ps (Runtime::become).
  void take_over(const protocol::FailoverRequest& failover);

 private:
  using Request = transport::RpcServer::Handler;
  /// Thrown to abort a request that must not be answered.
  struct CutOff {};

  void serve();
  void serve_requests();
  /// Serves a request that changes this ps, and sends it to the replica; one that changes nothing is served
  /// by rpc_.serve alone.
  void serve_change(std::uint16_t type, Request handler);
  std::vector<std::byte> change(std::uint16_t type, int from, transport::Bytes request);
  void serve_fabric();
  void serve_replica();
  /// Blocks until the replica has applied all records, or has ended. Throws CutOff.
  void await_replica();
  /// Gives up a replica that fails to answer: continues without it once the coordinator has agreed.
  void give_up_replica(const std::string& why);
  void ask_to_drop_replica();
  bool look_at_replica();
  /// Calls `then` once the replica has applied all records so far, at once if there is none.
  void when_safe(std::function<void()> then);
  /// The replica's side: reports its progress, and repeats a request of the ps that it follows.
  void say_progress(const protocol::ReplicaProgress& progress);
  void repeat(std::uint16_t type, int from, transport::Bytes request);
  void report(const transport::Message& message);
  void mark_dead(const protocol::WorkerDead& worker);
  void take_member(transport::Bytes member);
  /// Applies the complete entries of a dead rank and drops the rest.
  void forget(int rank);
  std::uint64_t add_to_counter(std::uint64_t counter, std::uint64_t delta);
  void count(std::uint32_t counter, std::uint64_t delta);
  std::unique_ptr<transport::Region> allocate_board();
  void recover();
  void undo_cut_off_count();
  /// Returns true if this is not the process in the table of members of the start of the job.
  bool restarted() const { return incarnation_ > 0 || (persistent_ && persistent_->found()); }
  void say_that_it_is_back();
  /// Sends the message that a worker awaits before it connects: see WorkerServer::await_ps.
  void introduce(std::int32_t rank);
  void say_known(std::int32_t rank);
  void greet_coordinator();
  /// Returns why this ps has to end, usually for lack of a coordinator; empty while it may continue.
  const std::string& lost();
  /// Returns true if this ps must stop serving.
  bool cut_off() { return fenced_ || !lost().empty(); }
  bool look_at_the_wire();
  void send_what_is_left();
  void sleep();
  /// The coordinator has declared the rank dead.
  bool is_lost(int rank) const { return runtime_->membership().is_lost(rank); }
  std::uint64_t max_ranks() const { return static_cast<std::uint64_t>(runtime_->table().capacity()); }
  transport::Peer& client(int rank) { return runtime_->data_peer(runtime_->member(rank)); }

  std::shared_ptr<cluster::Runtime> runtime_;
  transport::Fabric& fabric_;
  std::unique_ptr<PersistentState> persistent_;  // null: no process follows this one
  std::unique_ptr<SharedRegions> regions_;       // null: memory is from `persistent_` or the fabric
  std::unique_ptr<transport::Region> board_;
  protocol::BoardLayout layout_;
  std::uint32_t incarnation_ = 0;  // of the ps: the number of spares that have replaced it
  Store store_;
  std::unique_ptr<ReplicaStream> replica_;  // null: there was none
  RingReader rings_;
  PushInbox inbox_;
  RowSender rows_;
  ShardFileWriter saver_;
  std::chrono::steady_clock::time_point save_began_{};
  transport::RpcServer rpc_;
  std::map<std::uint16_t, Request> changes_;        // by type
  ReplicaInbox replicated_;                         // records of the ps whose replica this is
  std::chrono::steady_clock::time_point heard_{};   // last progress of the replica, while it is busy
  std::chrono::steady_clock::time_point looked_{};  // last check of `heard_`
  std::chrono::steady_clock::time_point asked_{};   // last request to drop the replica
  std::optional<std::chrono::steady_clock::time_point>
      given_up_;            // when the coordinator was told to drop the replica
  bool following_ = false;  // this is a replica
  bool over_ = false;
  bool fenced_ = false;
  cluster::CoordinatorWatch coordinator_;
  PsHeartbeat heartbeat_;
  std::string reason_to_end_;  // set if the coordinator is silent, though its connection is open
};

}  // namespace capstan::ps
