// join_fuzz.cpp -- libFuzzer at what strangers can send to the join listener, and at the Hello of who joins.
//
// The first byte of an input says how the rest comes: in pieces of so many bytes, 0 for all at once. What is
// found then does not depend on the pieces.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "capstan/serialize.hpp"
#include "cluster/bootstrap/join_handshake.hpp"
#include "cluster/bootstrap/tcp_bootstrap.hpp"
#include "cluster/membership/member.hpp"

namespace {

using namespace capstan;
using namespace capstan::cluster;
using State = JoinHandshake::State;

/// What the corpus shows.
Token token() {
  Token bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte('A' + i);
  return bytes;
}

void require(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "join_fuzz: %s\n", what);
  std::abort();
}

/// As the listener reads: until the request is whole, or is refused.
JoinHandshake visit(const Token& token, std::span<const std::byte> bytes, std::size_t piece) {
  JoinHandshake visit(token);
  while (!bytes.empty() && (visit.state() == State::greeting || visit.state() == State::talking)) {
    const std::size_t count = std::min(piece, bytes.size());
    visit.take(bytes.first(count));
    bytes = bytes.subspan(count);
  }
  return visit;
}

/// Malformed is an Error; what is not is the same when it is written again.
template <class T>
void decode_as(std::span<const std::byte> body) {
  try {
    const auto again = to_bytes(from_bytes<T>(body));
    require(std::equal(again.begin(), again.end(), body.begin(), body.end()), "a body is not what it was");
  } catch (const Error& error) {
    require(error.code() == Code::data_loss, "a malformed body is another error");
  }
}

void decode(std::span<const std::byte> body) {
  decode_as<Hello>(body);
  decode_as<StartCall>(body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Token kToken = token();
  const auto input = std::as_bytes(std::span(data, size));
  decode(input);
  if (input.empty()) return 0;
  const auto piece = std::to_integer<std::size_t>(input[0]);
  const auto bytes = input.subspan(1);

  const JoinHandshake whole = visit(kToken, bytes, std::max<std::size_t>(bytes.size(), 1));
  require(whole.body().size() <= kMostBodyBytes, "a body is too long");
  require(whole.state() != State::greeting || bytes.size() < kGreetingBytes,
          "a whole greeting has no answer");
  if (whole.state() == State::talking || whole.state() == State::asked) {
    const auto greeting = greeting_bytes(whole.request(), kToken);
    require(std::equal(greeting.begin(), greeting.end(), bytes.begin()),
            "somebody without the token is let in");
  }
  if (whole.state() == State::asked) {
    const std::size_t length = has_body(whole.request()) ? kLengthBytes : 0;
    require(bytes.size() == kGreetingBytes + length + whole.body().size(), "a request has another length");
    decode(whole.body());
  }
  if (piece == 0) return 0;
  // A request that is followed by more is whole before that is read: the listener answers it, and closes.
  const JoinHandshake pieces = visit(kToken, bytes, piece);
  const bool cut = pieces.state() == State::asked && whole.state() == State::refused;
  require(cut || pieces.state() == whole.state(), "pieces make a difference");
  return 0;
}
