// ps_connections.hpp -- one client's connections to all ps.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "client/channel/ps_connection.hpp"
#include "cluster/runtime.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::client {

/// The connections to all ps; dispatches their announcements and acknowledgments. Used by the thread that
/// owns the data fabric. Create one object per data fabric.
class PsConnections {
 public:
  /// `runtime` must outlive this object. Sends nothing.
  explicit PsConnections(cluster::Runtime& runtime);
  PsConnections(const PsConnections&) = delete;
  PsConnections& operator=(const PsConnections&) = delete;

  transport::RpcClient& rpc() noexcept { return rpc_; }
  /// Returns the connection to the ps with index `ps`; connects on first use. Throws the same errors as
  /// PsSession::connect.
  PsConnection& at(int ps) {
    PsConnection& connection = connections_.at(static_cast<std::size_t>(ps));
    connection.connect();
    return connection;
  }
  /// Like at(), but reconnects if the ps is dead. Throws Error(unavailable) if pushes in flight were lost, or
  /// if the ps is not restarted within --ps-wait.
  PsConnection& live_connection(int ps);
  /// Waits for the restart of every dead ps to which this client was connected; returns false if one is not
  /// restarted.
  bool reconnect();
  /// Runs `read`. Repeats it if it failed because a ps died and that ps has been restarted, unless pushes to
  /// a ps were lost.
  void retry(const std::function<void()>& read);
  /// Number of restarts and replacements of ps that this client has detected.
  std::uint64_t restarts() const noexcept;
  /// Number of losses of a ps's memory that this client has detected.
  std::uint64_t relocations() const noexcept;

  // Documented in PushChannel; these apply to every connected ps:
  bool idle();
  void publish();
  void flush();

 private:
  bool has_lost_pushes() const noexcept;
  void on_restart(const transport::Message& message);
  void on_acknowledgment(const transport::Message& message);

  cluster::Runtime& runtime_;
  transport::RpcClient rpc_;
  std::deque<PsConnection> connections_;  // by ps index
};

}  // namespace capstan::client
