// ps_server.hpp -- the life of a ps: apply pushes, answer clients, sleep when there is nothing to do.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "cluster/rpc.hpp"
#include "cluster/runtime.hpp"
#include "store/kept_state.hpp"
#include "store/ps_pulse.hpp"
#include "store/push_inbox.hpp"
#include "store/ring_reader.hpp"
#include "store/row_sender.hpp"
#include "store/store.hpp"

namespace capstan::store {

/// One thread does everything. Polls while there is work; after that it sleeps in the kernel until a message
/// or a doorbell comes. How long it polls before it sleeps depends on whether others want its core.
class PsServer {
 public:
  explicit PsServer(std::shared_ptr<cluster::Runtime> runtime);
  ~PsServer() { fabric_.silence(); }
  PsServer(const PsServer&) = delete;
  PsServer& operator=(const PsServer&) = delete;

  /// Until the coordinator says that the job is over. Throws Error(unavailable) when the coordinator dies, or
  /// with the reason that it gave when the job failed.
  void run();

 private:
  void serve_requests();
  void serve_fabric();
  /// A rank has died: what it has shown whole is applied, the rest is dropped.
  void forget(int rank);
  std::uint64_t add_to_counter(std::uint64_t counter, std::uint64_t delta);
  void count(std::uint32_t counter, std::uint64_t delta);
  void recover();
  void undo_cut_off_count();
  void say_that_it_is_back();
  /// The worker waits for this before it connects: see WorkerServer::await_ps.
  void say_known(std::int32_t rank);
  bool look_at_the_wire();
  void send_what_is_left();
  void sleep();
  std::uint64_t places() const { return static_cast<std::uint64_t>(runtime_->table().places()); }
  transport::Peer& client(int rank) { return runtime_->data_peer(runtime_->member(rank)); }

  std::shared_ptr<cluster::Runtime> runtime_;
  transport::Fabric& fabric_;
  std::unique_ptr<KeptState> kept_;  // null: nothing outlives this process
  std::unique_ptr<transport::Region> board_;
  shard::BoardLayout layout_;
  Store store_;
  RingReader rings_;
  PushInbox inbox_;
  RowSender rows_;
  cluster::RpcServer rpc_;
  bool over_ = false;
  std::set<int> gone_;  // ranks that count as dead, by the coordinator's word
  PsPulse pulse_;
  std::string lost_;  // the coordinator's name when it has died
};

}  // namespace capstan::store
