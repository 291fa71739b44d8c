// ps_server.hpp -- the life of a ps: apply pushes, answer clients, sleep when there is nothing to do.
#pragma once

#include <memory>
#include <string>

#include "cluster/rpc.hpp"
#include "cluster/runtime.hpp"
#include "store/ring_reader.hpp"
#include "store/store.hpp"

namespace capstan::store {

/// One thread does everything. Polls while there is work; after that it sleeps in the kernel until a message
/// or a doorbell comes. How long it polls before it sleeps depends on whether it has a core of its own.
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
  void sleep();

  std::shared_ptr<cluster::Runtime> runtime_;
  transport::Fabric& fabric_;
  std::unique_ptr<transport::Region> board_;
  shard::BoardLayout layout_;
  Store store_;
  RingReader rings_;
  cluster::RpcServer rpc_;
  bool over_ = false;
  std::string lost_;  // the coordinator's name when it has died
};

}  // namespace capstan::store
