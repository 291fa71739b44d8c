// replication.hpp -- the ps's side of replication: the replica applies each change before the ps does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/runtime.hpp"
#include "ps/durability/replica_stream.hpp"
#include "ps/durability/replica_watch.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::ps {

/// Connects the stream of records (ReplicaStream) with the decision to continue without the replica
/// (ReplicaWatch). Without a replica, every function returns at once and has no effect, except that
/// `execute` and `when_safe` call their function. Used by the ps's thread only.
class Replication {
 public:
  using Request = transport::RpcServer::Handler;
  /// Receives messages until the function returns true. Throws, to abort the request, if the ps must stop.
  using ReceiveUntil = std::function<void(const std::function<bool()>& done)>;

  /// A ps has a replica if the job has replicas; a replica has none.
  Replication(cluster::Runtime& runtime, ReceiveUntil receive_until);

  /// Registers the handlers of the replica's and the coordinator's messages with the control fabric.
  void serve();
  /// Null: the ps never had a replica.
  ReplicaStream* stream() const noexcept { return stream_.get(); }
  bool is_replica(const transport::Peer& peer) const noexcept { return stream_ && &peer == &stream_->peer(); }

  /// Executes a request that changes this ps: first on the replica, then, once the replica has applied it, on
  /// this ps. Abandons the replica if the outcomes differ. Throws the exceptions of `handler` or
  /// ReceiveUntil.
  std::vector<std::byte> execute(std::uint16_t type, int from, transport::Bytes request,
                                 const Request& handler);
  /// Adds a change to the stream without waiting until the replica has applied it.
  void send(std::uint16_t type, int from, transport::Bytes request);
  /// Sends the changes so far to the replica, even if earlier ones are in flight.
  void flush() {
    if (stream_) stream_->flush();
  }
  /// Called after each batch of pushes: see ReplicaStream::send_if_idle.
  void send_if_idle() {
    if (stream_) stream_->send_if_idle();
  }
  /// Calls `then` once the replica has applied all records so far.
  void when_safe(std::function<void()> then);
  /// Continues without the replica once the coordinator has agreed. `why` is logged.
  void abandon(const std::string& why);

  /// Called in each turn of the loop. Returns true if a function of `when_safe` was called. While
  /// `coordinator_connected` is false, no consent to continue without the replica is due.
  bool poll(bool coordinator_connected);
  void on_coordinator_returned();
  /// Returns true once this ps has to stop: without the coordinator's consent, the replica may replace it.
  bool consent_overdue() const noexcept { return watch_ && watch_->consent_overdue(); }

 private:
  void await_applied();

  transport::Fabric& fabric_;
  ReceiveUntil receive_until_;
  std::unique_ptr<ReplicaStream> stream_;
  std::unique_ptr<ReplicaWatch> watch_;  // null if `stream_` is
};

}  // namespace capstan::ps
