// join_listener.hpp -- the coordinator's TCP listener, for workers that join late, status and metrics.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "cluster/bootstrap/join_handshake.hpp"
#include "cluster/bootstrap/socket.hpp"

namespace capstan::cluster {

/// Has a thread of its own, which sleeps between connections. A connection that has not sent the token costs
/// a file descriptor and a preallocated buffer for a bounded time, and receives nothing; if there are too
/// many, the oldest one is closed.
class JoinListener {
 public:
  /// Returns the answer to a client that has sent the token. Called on the listener's thread; an Error that
  /// it throws is sent as the answer.
  using Answer = std::function<JoinAnswer(JoinRequest, std::span<const std::byte> body)>;
  struct Limits {
    /// Maximum time until the request is complete, then between two pieces of the answer.
    std::chrono::milliseconds timeout{5000};
    std::size_t strangers = 64;  // clients that have not sent the token yet
    std::size_t guests = 64;     // clients that have sent the token
  };

  /// Listens at `address`, "HOST" or "HOST:PORT". The listener's thread calls `greet` first. Throws Error.
  JoinListener(const std::string& address, const Token& token, Answer answer, std::function<void()> greet,
               Limits limits);
  JoinListener(const std::string& address, const Token& token, Answer answer)
      : JoinListener(
            address, token, std::move(answer), [] {}, Limits()) {}
  /// Closes all connections.
  ~JoinListener();
  JoinListener(const JoinListener&) = delete;
  JoinListener& operator=(const JoinListener&) = delete;

  /// "127.0.0.1:40123"
  const std::string& address() const noexcept { return address_; }

 private:
  Socket listener_;
  Socket wake_;  // an eventfd
  std::string address_;
  Token token_;
  std::jthread thread_;
};

}  // namespace capstan::cluster
