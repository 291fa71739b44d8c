// join_listener.hpp -- the coordinator's TCP listener, for who was not there at the start.
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

/// A thread of its own, asleep until somebody comes: the thread that hands out closures never looks here. Who
/// has not shown the token costs a file descriptor and a buffer that is there from the start, for a time that
/// is bounded, and is told nothing; when too many such are there the one that came first has to go.
class JoinListener {
 public:
  /// To who has shown the token. On the listener's thread; an Error that it throws is sent as the answer.
  using Answer = std::function<JoinAnswer(JoinRequest, std::span<const std::byte> body)>;
  struct Limits {
    /// From a connection until the request is whole, and then between two pieces of the answer.
    std::chrono::milliseconds timeout{5000};
    std::size_t strangers = 64;
    std::size_t guests = 64;  // who have shown the token
  };

  /// Listens at `address`, "HOST" or "HOST:PORT". `greet` is called first on the listener's thread. Throws
  /// Error.
  JoinListener(const std::string& address, const Token& token, Answer answer, std::function<void()> greet,
               Limits limits);
  JoinListener(const std::string& address, const Token& token, Answer answer)
      : JoinListener(
            address, token, std::move(answer), [] {}, Limits()) {}
  /// Closes every connection.
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
