// ps_server.hpp -- the life of a ps: apply pushes, answer clients, sleep when there is nothing to do.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "cluster/membership/coordinator_watch.hpp"
#include "cluster/runtime.hpp"
#include "protocol/failover.hpp"
#include "ps/durability/part_saver.hpp"
#include "ps/durability/persistent_state.hpp"
#include "ps/durability/replica_inbox.hpp"
#include "ps/durability/replica_stream.hpp"
#include "ps/ingest/push_inbox.hpp"
#include "ps/ingest/ring_reader.hpp"
#include "ps/server/ps_heartbeat.hpp"
#include "ps/server/row_sender.hpp"
#include "ps/shard/store.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::ps {

/// One thread does everything. Polls while there is work; after that it sleeps in the kernel until a message
/// or a doorbell comes. How long it polls before it sleeps depends on whether others want its core.
class PsServer {
 public:
  /// `takeover`: this rank was a spare, and has become the ps (Runtime::become). Throws Error when the shards
  /// cannot be had from where it says.
  explicit PsServer(std::shared_ptr<cluster::Runtime> runtime,
                    std::optional<protocol::TakeOver> takeover = {});
  ~PsServer() { fabric_.silence(); }
  /// The largest that a push may have.
  static std::uint64_t entry_bytes(const cluster::Runtime& runtime) {
    return runtime.settings().bytes("push-ring-bytes") / 4;
  }
  static ClosureLedger::Capacity ledger_capacity(const cluster::Runtime& runtime) {
    return {.replicas = static_cast<std::size_t>(runtime.settings().integer("replicas")),
            .open = runtime.coordinator_may_return() ? ClosureLedger::kOpen : 0};
  }
  PsServer(const PsServer&) = delete;
  PsServer& operator=(const PsServer&) = delete;

  /// Until the coordinator says that the job is over, or that this ps counts as lost (kFenced), whose place
  /// another process has. Throws Error(unavailable) when the coordinator dies and does not come back, or with
  /// the reason that it gave when the job failed.
  void run();
  /// As the replica of the ps with this spare's index: does what that ps does, until the coordinator says
  /// that it is to take its place, or that the job is over: then there is nothing to take over.
  std::optional<protocol::TakeOver> follow();
  /// This rank has become the ps (Runtime::become). Throws Error when the shards cannot be had from where it
  /// says.
  void take_over(const protocol::TakeOver& takeover);

 private:
  using Request = transport::RpcServer::Handler;
  /// Thrown in the middle of a request whose answer nobody may get.
  struct CutOff {};

  void serve();
  void serve_requests();
  /// A request that changes what this ps holds: its replica does it as well.
  void serve_change(std::uint16_t type, Request handler);
  std::vector<std::byte> change(std::uint16_t type, int from, transport::Bytes request);
  void serve_fabric();
  void serve_replica();
  /// Returns when the replica has done all that it was told, or is no more. Throws CutOff.
  void await_replica();
  /// It does not answer, or not as it should: goes on without it when the coordinator knows.
  void give_up_replica(const std::string& why);
  void ask_to_drop_replica();
  bool look_at_replica();
  /// Does it at once, or when the replica has done all that it was told so far.
  void when_safe(std::function<void()> then);
  /// The replica's side: how far it has come, and what the ps that it follows has done.
  void say_progress(const protocol::ReplicaProgress& progress);
  void repeat(std::uint16_t type, int from, transport::Bytes request);
  void report(const transport::Message& message);
  void take_gone(const protocol::WorkerGone& worker);
  void take_member(transport::Bytes member);
  /// A rank has died: what it has shown whole is applied, the rest is dropped.
  void forget(int rank);
  std::uint64_t add_to_counter(std::uint64_t counter, std::uint64_t delta);
  void count(std::uint32_t counter, std::uint64_t delta);
  std::unique_ptr<transport::Region> allocate_board();
  void recover();
  void undo_cut_off_count();
  /// It is not the process that the table of the job's start tells of.
  bool came_back() const { return life_ > 0 || (kept_ && kept_->found()); }
  void say_that_it_is_back();
  /// The worker waits for this before it connects: see WorkerServer::await_ps.
  void introduce(std::int32_t rank);
  void say_known(std::int32_t rank);
  void greet_coordinator();
  /// Why this ps has to end, most often for want of a coordinator; empty as long as it may go on.
  const std::string& lost();
  /// Nothing that it does counts any more.
  bool cut_off() { return fenced_ || !lost().empty(); }
  bool look_at_the_wire();
  void send_what_is_left();
  void sleep();
  std::uint64_t places() const { return static_cast<std::uint64_t>(runtime_->table().places()); }
  transport::Peer& client(int rank) { return runtime_->data_peer(runtime_->member(rank)); }

  std::shared_ptr<cluster::Runtime> runtime_;
  transport::Fabric& fabric_;
  std::unique_ptr<PersistentState> kept_;   // null: nothing outlives this process
  std::unique_ptr<SharedRegions> regions_;  // null: `kept_` has them, or nobody maps them
  std::unique_ptr<transport::Region> board_;
  protocol::BoardLayout layout_;
  std::uint32_t life_ = 0;  // which spare this is in the place of the ps; 0: none
  Store store_;
  std::unique_ptr<ReplicaStream> replica_;  // null: there never was one
  RingReader rings_;
  PushInbox inbox_;
  RowSender rows_;
  PartSaver saver_;
  std::chrono::steady_clock::time_point save_began_{};
  transport::RpcServer rpc_;
  std::map<std::uint16_t, Request> changes_;        // by type
  ReplicaInbox replicated_;                         // of the ps whose replica this is
  std::chrono::steady_clock::time_point heard_{};   // of this ps's replica, while it has something to do
  std::chrono::steady_clock::time_point looked_{};  // whether it was heard
  std::chrono::steady_clock::time_point asked_{};   // the coordinator, to drop the replica
  std::optional<std::chrono::steady_clock::time_point> given_up_;  // the replica, as the coordinator was told
  bool following_ = false;                                         // this is a replica
  bool over_ = false;
  bool fenced_ = false;
  std::set<int> gone_;  // ranks that count as dead, by the coordinator's word
  cluster::CoordinatorWatch coordinator_;
  PsHeartbeat pulse_;
  std::string reason_to_end_;  // though no connection has ended
};

}  // namespace capstan::ps
