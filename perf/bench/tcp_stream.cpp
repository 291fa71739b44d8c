// tcp_stream.cpp -- send(2) and recv(2) in loops.
#include "perf/bench/tcp_stream.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "capstan/error.hpp"
#include "perf/bench/timing.hpp"

namespace capstan::perf {
namespace {

/// Reused for all requests of a sample, so that the server receives into its cache.
constexpr std::uint64_t kReceiveBytes = 256 << 10;
constexpr timeval kSilence{60, 0};  // a peer that is silent for so long has failed

Error socket_error(const char* call, const std::string& address) {
  return Error(Code::unavailable, fmt::format("TCP stream, {}: {}: {}", address, call, std::strerror(errno)));
}

void set_options(const cluster::Socket& socket) {
  const int on = 1;
  // Best effort: without them the stream is slower, or a failed peer is noticed later.
  static_cast<void>(setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
  static_cast<void>(setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kSilence, sizeof kSilence));
  static_cast<void>(setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSilence, sizeof kSilence));
}

/// One end of a connection.
class Stream {
 public:
  Stream(int socket, bool polling) : socket_(socket), polling_(polling) {}

  void send(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) throw socket_error("send", "connected peer");
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
  }

  /// Sends `count` bytes of `memory` by pieces, from `at` on and then from the start again.
  /// REQUIRES: `memory` holds a piece.
  void send_pieces(std::span<const std::byte> memory, std::uint64_t& at, std::uint64_t count,
                   std::uint64_t piece) const {
    while (count != 0) {
      const std::uint64_t bytes = std::min(count, piece);
      if (memory.size() - at < bytes) at = 0;
      send(memory.subspan(at, bytes));
      at += bytes;
      count -= bytes;
    }
  }

  /// Receives at least one byte; returns the number of bytes, or 0 if the peer has closed the connection.
  std::size_t receive_some(std::span<std::byte> into) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kSilence.tv_sec);
    for (;;) {
      const ssize_t received = ::recv(socket_, into.data(), into.size(), polling_ ? MSG_DONTWAIT : 0);
      if (received >= 0) return static_cast<std::size_t>(received);
      if (errno == EINTR) continue;
      if (!polling_ || errno != EAGAIN || std::chrono::steady_clock::now() > deadline)
        throw socket_error("recv", "connected peer");
      std::this_thread::yield();
    }
  }

  void receive(std::span<std::byte> into) const {
    while (!into.empty()) into = into.subspan(receive_part(into));
  }

  /// Receives `count` bytes and keeps none: each part is written to the start of `memory`.
  void discard(std::span<std::byte> memory, std::uint64_t count) const {
    while (count != 0) count -= receive_part(memory.first(std::min<std::uint64_t>(memory.size(), count)));
  }

  /// Like receive_some(), but throws if the peer has closed the connection.
  std::size_t receive_part(std::span<std::byte> into) const {
    const std::size_t received = receive_some(into);
    if (received == 0) throw Error(Code::unavailable, "TCP stream: the peer closed the connection early");
    return received;
  }

 private:
  int socket_;
  bool polling_;
};

template <class Value>
std::span<std::byte> bytes_of(Value& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

/// Returns part `index` of `bytes`, of `parts` parts whose sizes differ by at most one.
std::uint64_t part_of(std::uint64_t bytes, std::size_t index, std::size_t parts) {
  return bytes / parts + (index < bytes % parts ? 1 : 0);
}

TcpExchange part_of(TcpExchange exchange, std::size_t index, std::size_t parts) {
  exchange.request = part_of(exchange.request, index, parts);
  exchange.answer = part_of(exchange.answer, index, parts);
  return exchange;
}

/// Bytes that all threads of a server send. Thread-safe.
class SharedSource {
 public:
  using Bytes = std::vector<std::byte>;

  /// Returns at least `size` bytes, which stay valid while the caller holds them.
  std::shared_ptr<const Bytes> at_least(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    if (!bytes_ || bytes_->size() < size) {
      bytes_.reset();
      bytes_ = std::make_shared<const Bytes>(size, std::byte{1});
    }
    return bytes_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const Bytes> bytes_;
};

/// Serves samples until the client closes the connection between two of them.
void serve_samples(int socket, SharedSource& shared) {
  std::vector<std::byte> received(kReceiveBytes);
  std::shared_ptr<const SharedSource::Bytes> held;
  TcpExchange sample;
  // Sleeps between samples in either mode.
  const Stream start(socket, false);
  for (;;) {
    const std::span<std::byte> header = bytes_of(sample);
    const std::size_t first = start.receive_some(header);
    if (first == 0) return;
    start.receive(header.subspan(first));
    std::span<const std::byte> source;
    if (sample.answer != 0) {
      const std::uint64_t size = std::max(sample.source, sample.piece);
      held.reset();  // a smaller source is freed when no thread holds it
      held = shared.at_least(size);
      source = std::span(*held).first(size);
    }
    start.send(bytes_of(sample.calls));  // ready
    const Stream stream(socket, sample.polling != 0);
    std::uint64_t count = 0;
    std::uint64_t at = 0;
    const std::uint64_t calls = sample.answer != 0 ? sample.calls : 1;
    const std::uint64_t request = sample.answer != 0 ? sample.request : sample.request * sample.calls;
    for (std::uint64_t call = 0; call < calls; ++call) {
      stream.discard(received, request);
      count += request;
      if (sample.answer != 0) stream.send_pieces(source, at, sample.answer, sample.piece);
    }
    stream.send(bytes_of(count));
  }
}

}  // namespace

TcpServer::TcpServer() {
  const std::string host = cluster::address_of_this_host();
  sockaddr_in address = cluster::address_in(host);
  socklen_t length = sizeof address;
  listener_ = cluster::Socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!listener_ || ::bind(listener_.get(), any, length) != 0 || ::listen(listener_.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener_.get(), any, &length) != 0)
    throw socket_error("listen", host);
  address_ = cluster::to_string(address);
}

void TcpServer::accept(std::size_t clients, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (connections_.size() < clients) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{listener_.get(), POLLIN, 0};
    const int found = ::poll(&ready, 1, std::max(0, static_cast<int>(left.count())));
    if (found < 0 && errno == EINTR) continue;
    if (found < 0) throw socket_error("poll", address_);
    if (found == 0 || left.count() < 0)
      throw Error(Code::deadline_exceeded,
                  fmt::format("TCP stream, {}: found {} connections after {} ms, expected {}; "
                              "a firewall may block the port",
                              address_, connections_.size(), timeout.count(), clients));
    // Without SOCK_NONBLOCK, so that the connection blocks. The listener does not: a client may disconnect
    // between poll(2) and accept4(2).
    cluster::Socket connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
      throw socket_error("accept", address_);
    }
    set_options(connection);
    connections_.push_back(std::move(connection));
  }
}

void TcpServer::serve() {
  SharedSource source;
  std::vector<std::exception_ptr> errors(connections_.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        serve_samples(connections_[i].get(), source);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  connections_.clear();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

TcpClient::TcpClient(const std::vector<std::string>& servers) {
  for (const std::string& server : servers) {
    const sockaddr_in address = cluster::address_in(server);
    cluster::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) throw socket_error("socket", server);
    set_options(socket);
    // The timeout of set_options() also limits connect(2).
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw socket_error("connect", server);
    connections_.push_back(std::move(socket));
  }
}

double TcpClient::seconds(const TcpExchange& exchange) {
  struct Server {
    Stream stream;
    TcpExchange part;
    std::span<std::byte> memory;  // requests come from here, answers go here
    std::uint64_t received = 0;
  };
  const std::size_t parts = connections_.size();
  const std::uint64_t share = std::max(
      {(exchange.answer / parts + 1) * exchange.in_flight, exchange.request / parts + 1, std::uint64_t{1}});
  if (memory_.size() < share * parts) memory_.resize(share * parts);
  std::vector<Server> servers;
  for (std::size_t i = 0; i < parts; ++i) {
    const int socket = connections_[i].get();
    TcpExchange part = part_of(exchange, i, parts);
    const Stream start(socket, false);
    start.send(bytes_of(part));
    start.receive(bytes_of(part.calls));
    servers.push_back(
        {Stream(socket, exchange.polling != 0), part, std::span(memory_).subspan(i * share, share)});
  }
  // Takes bytes that arrived early, too, but not the count that follows the last answer.
  const auto receive_until = [](Server& server, std::uint64_t least, std::uint64_t most) {
    const std::uint64_t size = server.part.answer * server.part.in_flight;
    while (server.received < least) {
      const std::uint64_t at = server.received % size;
      const std::uint64_t most_now = std::min(size - at, most - server.received);
      server.received += server.stream.receive_part(server.memory.subspan(at, most_now));
    }
  };
  return seconds_of([&] {
    for (std::uint64_t call = 0; call < exchange.calls; ++call) {
      for (Server& server : servers) {
        std::uint64_t at = 0;
        server.stream.send_pieces(server.memory, at, server.part.request, server.part.piece);
      }
      if (call + 1 < exchange.in_flight) continue;
      for (Server& server : servers) {
        const std::uint64_t complete = call + 2 - exchange.in_flight;
        receive_until(server, complete * server.part.answer, (call + 1) * server.part.answer);
      }
    }
    for (Server& server : servers) {
      const std::uint64_t all = exchange.calls * server.part.answer;
      receive_until(server, all, all);
      std::uint64_t count = 0;
      server.stream.receive(bytes_of(count));
      const std::uint64_t expected = exchange.calls * server.part.request;
      if (count != expected || server.received != all)
        throw Error(Code::data_loss,
                    fmt::format("TCP stream: the server received {} bytes and sent {}, expected {} and {}",
                                count, server.received, expected, all));
      traffic_.counted += count;
      traffic_.answered += server.received;
    }
  });
}

}  // namespace capstan::perf
