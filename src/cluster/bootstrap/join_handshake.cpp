// join_handshake.cpp -- parses and builds requests.
#include "cluster/bootstrap/join_handshake.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "capstan/serialize.hpp"

namespace capstan::cluster {
namespace {

constexpr std::size_t kPrefixBytes = kLengthBytes + kJoinMagic.size();

/// Start of every greeting.
constexpr std::array<std::byte, kPrefixBytes> prefix() {
  std::array<std::byte, kPrefixBytes> bytes{};
  bytes[0] = std::byte{kGreetingBytes - kLengthBytes};
  for (std::size_t i = 0; i < kJoinMagic.size(); ++i) bytes[kLengthBytes + i] = std::byte(kJoinMagic[i]);
  return bytes;
}
static_assert(kGreetingBytes - kLengthBytes < 256);

}  // namespace

std::vector<std::byte> greeting_bytes(JoinRequest request, const Token& token) {
  Writer out;
  const auto first = prefix();
  out.raw(first.data(), first.size());
  out.raw(&request, sizeof request);
  out.raw(token.data(), token.size());
  return out.take();
}

std::vector<std::byte> framed(std::span<const std::byte> body) {
  std::array<std::byte, kLengthBytes> length{};
  for (std::size_t i = 0; i < kLengthBytes; ++i) length[i] = std::byte(body.size() >> (8 * i) & 0xff);
  Writer out;
  out.raw(length.data(), length.size());
  out.raw(body.data(), body.size());
  return out.take();
}

std::size_t length_in(std::span<const std::byte, kLengthBytes> bytes) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::size_t>(bytes[i]) << (8 * i);
  return length;
}

bool same(const Token& a, const Token& b) noexcept {
  volatile unsigned difference = 0;  // volatile, so that the compiler does not stop at the first difference
  for (std::size_t i = 0; i < kTokenBytes; ++i) {
    difference = difference | std::to_integer<unsigned>(a[i] ^ b[i]);
  }
  return difference == 0;
}

JoinHandshake::State JoinHandshake::refuse(std::string_view reason) noexcept {
  reason_ = reason;
  return state_ = State::refused;
}

JoinHandshake::State JoinHandshake::read_greeting() noexcept {
  static constexpr auto kPrefix = prefix();
  if (!std::equal(head_.begin(),
                  head_.begin() + static_cast<std::ptrdiff_t>(std::min(in_head_, kPrefixBytes)),
                  kPrefix.begin())) {
    return refuse("it does not follow the protocol of the join listener");
  }
  if (in_head_ < kGreetingBytes) return state_;
  Token shown;
  std::copy_n(head_.begin() + kPrefixBytes + 1, kTokenBytes, shown.begin());
  if (!same(shown, *token_)) return refuse("wrong token");
  request_ = static_cast<JoinRequest>(head_[kPrefixBytes]);
  in_head_ = 0;
  switch (request_) {
    case JoinRequest::status:
    case JoinRequest::metrics:
      return state_ = State::asked;
    case JoinRequest::join:
    case JoinRequest::start:
      return state_ = State::talking;
  }
  return refuse("unknown request");
}

JoinHandshake::State JoinHandshake::take(std::span<const std::byte> bytes) {
  CAPSTAN_ASSERT(state_ == State::greeting || state_ == State::talking);
  const auto take_head = [&](std::size_t whole) {
    const std::size_t count = std::min(bytes.size(), whole - in_head_);
    std::copy_n(bytes.begin(), count, head_.begin() + static_cast<std::ptrdiff_t>(in_head_));
    in_head_ += count;
    bytes = bytes.subspan(count);
  };
  if (state_ == State::greeting) {
    take_head(kGreetingBytes);
    read_greeting();
  }
  if (state_ == State::talking && !has_length_) {
    take_head(kLengthBytes);
    if (in_head_ < kLengthBytes) return state_;
    const std::size_t length = length_in(std::span(head_).first<kLengthBytes>());
    if (length > kMaxBodyBytes) return refuse("its request is too long");
    has_length_ = true;
    body_.resize(length);
  }
  if (state_ == State::talking) {
    const std::size_t count = std::min(bytes.size(), body_.size() - in_body_);
    std::copy_n(bytes.begin(), count, body_.begin() + static_cast<std::ptrdiff_t>(in_body_));
    in_body_ += count;
    bytes = bytes.subspan(count);
    if (in_body_ == body_.size()) state_ = State::asked;
  }
  if (state_ == State::asked && !bytes.empty()) return refuse("it sent bytes after the end of its request");
  return state_;
}

}  // namespace capstan::cluster
