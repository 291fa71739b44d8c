// tcp_stream.hpp -- the bytes of lookups, pulls and pushes over plain TCP sockets: the bound of Capstan over
// TCP.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/bootstrap/socket.hpp"

namespace capstan::perf {

/// One sample: calls that each send a request to a server and receive its answer. Sizes are in bytes. The
/// order of the members is that of the message that starts a sample.
struct TcpExchange {
  std::uint64_t calls = 1;
  std::uint64_t request = 0;    // bytes that a call sends
  std::uint64_t answer = 0;     // bytes that a call receives; 0: the server only counts the requests' bytes
  std::uint64_t piece = 1;      // size of one send(2), at both ends
  std::uint64_t source = 0;     // size of the memory from which the server sends answers, in turn
  std::uint64_t in_flight = 1;  // maximum number of calls without a complete answer
  std::uint64_t polling = 0;    // 1: both ends poll their socket; 0: they sleep in recv(2)

  auto operator<=>(const TcpExchange&) const = default;
};

/// Bytes of all samples of a client.
struct TcpTraffic {
  std::uint64_t counted = 0;   // sum of the servers' counts of the bytes that they received
  std::uint64_t answered = 0;  // bytes that the client received
};

/// The end that a ps has: accepts connections on any port of the first network interface.
class TcpServer {
 public:
  /// Throws Error(unavailable) if it cannot listen.
  TcpServer();
  /// Returns "10.0.0.1:4711".
  const std::string& address() const { return address_; }
  /// Waits for `clients` connections. Throws Error(deadline_exceeded) after `timeout`.
  void accept(std::size_t clients, std::chrono::milliseconds timeout = std::chrono::seconds(10));
  /// Serves all accepted connections, each in its own thread, until the clients close them. Throws
  /// Error(unavailable) if a connection breaks in the middle of a sample.
  void serve();

 private:
  cluster::Socket listener_;
  std::string address_;
  std::vector<cluster::Socket> connections_;
};

/// The end that a worker has: one connection to each server.
class TcpClient {
 public:
  /// Throws Error(unavailable) if it cannot connect.
  explicit TcpClient(const std::vector<std::string>& servers);

  /// Runs a sample and returns its duration in seconds. Each server receives and answers an equal part of
  /// each call. The sample ends when all answers, and each server's count of the bytes that it received,
  /// have arrived. Throws Error: unavailable if a connection breaks, data_loss if a count is wrong.
  double seconds(const TcpExchange& exchange);
  const TcpTraffic& traffic() const { return traffic_; }

 private:
  std::vector<cluster::Socket> connections_;
  std::vector<std::byte> memory_;
  TcpTraffic traffic_;
};

}  // namespace capstan::perf
