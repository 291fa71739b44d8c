// join_handshake.hpp -- the protocol of the join listener, without a socket.
//
//   client:    a greeting  length (41), "capstan1", request, token of 32 bytes
//              a body      length, bytes: for `join` the Hello of the worker; for `start` a StartCall
//   listener:  an answer   length, bytes: a JoinAnswer
//
// A length is the number of bytes that follow it, in four bytes, little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/error.hpp"

namespace capstan::cluster {

inline constexpr std::size_t kTokenBytes = 32;
using Token = std::array<std::byte, kTokenBytes>;

/// Sent over the wire: never renumber.
enum class JoinRequest : std::uint8_t { status = 1, join = 2, start = 3, metrics = 4 };

/// Returns true if the request has a body.
constexpr bool has_body(JoinRequest request) noexcept {
  return request != JoinRequest::status && request != JoinRequest::metrics;
}

struct JoinAnswer {
  Code code = Code::ok;
  std::string message;
  std::vector<std::byte> bytes;
};

inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::string_view kJoinMagic = "capstan1";
inline constexpr std::size_t kGreetingBytes = kLengthBytes + kJoinMagic.size() + 1 + kTokenBytes;
/// Limit of the body of a request in bytes. A Hello has some hundred bytes per network device.
inline constexpr std::size_t kMaxBodyBytes = 64 * 1024;

std::vector<std::byte> greeting_bytes(JoinRequest request, const Token& token);
/// Returns `body` preceded by its length.
std::vector<std::byte> framed(std::span<const std::byte> body);
std::size_t length_in(std::span<const std::byte, kLengthBytes> bytes) noexcept;

/// Takes the same time wherever the tokens differ.
bool same(const Token& a, const Token& b) noexcept;

/// The listener's end of one connection. Until the token was received, it stores only the greeting and
/// allocates nothing; afterwards, it allocates at most kMaxBodyBytes.
class JoinHandshake {
 public:
  enum class State : std::uint8_t {
    greeting,  // the token was not received yet
    talking,   // the token was received; the rest of the request is missing
    asked,     // request() and body() are complete
    refused    // reason() returns why
  };

  explicit JoinHandshake(const Token& token) noexcept : token_(&token) {}

  /// Processes received bytes, in pieces of any size. REQUIRES: greeting or talking.
  State take(std::span<const std::byte> bytes);
  State state() const noexcept { return state_; }
  std::string_view reason() const noexcept { return reason_; }
  JoinRequest request() const noexcept { return request_; }
  std::span<const std::byte> body() const noexcept { return body_; }

 private:
  State refuse(std::string_view reason) noexcept;
  State read_greeting() noexcept;

  const Token* token_;
  State state_ = State::greeting;
  JoinRequest request_{};
  std::string_view reason_;
  std::array<std::byte, kGreetingBytes> head_{};  // the greeting; later the body's length
  std::size_t in_head_ = 0;
  bool has_length_ = false;
  std::vector<std::byte> body_;
  std::size_t in_body_ = 0;
};

}  // namespace capstan::cluster
