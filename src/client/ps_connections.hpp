// ps_connections.hpp -- one client's connections to all ps.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "client/channel/ps_connection.hpp"
#include "cluster/runtime.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::client {

/// Hands announcements and acknowledgments of ps to their connections. Used by the thread that owns the data
/// fabric; one for each data fabric.
class PsConnections {
 public:
  /// `runtime` outlives this object. Sends nothing.
  explicit PsConnections(cluster::Runtime& runtime);
  PsConnections(const PsConnections&) = delete;
  PsConnections& operator=(const PsConnections&) = delete;

  transport::RpcClient& rpc() noexcept { return rpc_; }
  /// Returns the connection to the ps with index `ps`, connected on first use. Throws what
  /// PsSession::connect does.
  PsConnection& at(int ps) {
    PsConnection& connection = connections_.at(static_cast<std::size_t>(ps));
    connection.connect();
    return connection;
  }
  /// The same, to a live ps: it may have been restarted, if nothing was in flight to it. Throws
  /// Error(unavailable).
  PsConnection& live(int ps);
  /// Waits for every dead ps that this client has connected to; returns false if one does not return.
  bool reconnect();
  /// Runs `read`, and again if it failed because a ps died that has been restarted since, unless pushes that
  /// were in flight to it are lost.
  void retry(const std::function<void()>& read);
  /// Number of times that a ps was restarted or replaced, as far as this client has noticed.
  std::uint64_t restarts() const noexcept;
  /// Number of times that a ps's memory was lost, as far as this client has noticed.
  std::uint64_t relocations() const noexcept;

  // PushChannel describes these; for every ps that this client has connected to:
  bool idle();
  void publish();
  void flush();

 private:
  bool lost_pushes() const noexcept;
  void take_restart(const transport::Message& message);
  void take_acknowledgment(const transport::Message& message);

  cluster::Runtime& runtime_;
  transport::RpcClient rpc_;
  std::deque<PsConnection> connections_;  // by ps index
};

}  // namespace capstan::client
