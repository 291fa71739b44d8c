// join_fuzz.cpp -- libFuzzer target for the join listener's input from unauthenticated peers, and for Hello.
//
// The first byte of an input is the size of the pieces in which the other bytes arrive; 0 for one piece. The
// result must not depend on the pieces.
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

/// The token of the corpus.
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

/// Feeds the handshake as the listener does: until the request is complete or rejected.
JoinHandshake visit(const Token& token, std::span<const std::byte> bytes, std::size_t piece) {
  JoinHandshake visit(token);
  while (!bytes.empty() && (visit.state() == State::greeting || visit.state() == State::talking)) {
    const std::size_t count = std::min(piece, bytes.size());
    visit.take(bytes.first(count));
    bytes = bytes.subspan(count);
  }
  return visit;
}

/// A malformed body must throw data_loss; a valid one must be unchanged by a round trip.
template <class T>
void decode_as(std::span<const std::byte> body) {
  try {
    const auto again = to_bytes(from_bytes<T>(body));
    require(std::equal(again.begin(), again.end(), body.begin(), body.end()),
            "a body changes in a round trip");
  } catch (const Error& error) {
    require(error.code() == Code::data_loss, "a malformed body throws another code");
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

  const JoinHandshake complete = visit(kToken, bytes, std::max<std::size_t>(bytes.size(), 1));
  require(complete.body().size() <= kMaxBodyBytes, "a body is too long");
  require(complete.state() != State::greeting || bytes.size() < kGreetingBytes,
          "a complete greeting is not processed");
  if (complete.state() == State::talking || complete.state() == State::asked) {
    const auto greeting = greeting_bytes(complete.request(), kToken);
    require(std::equal(greeting.begin(), greeting.end(), bytes.begin()),
            "a peer without the token is accepted");
  }
  if (complete.state() == State::asked) {
    const std::size_t length = has_body(complete.request()) ? kLengthBytes : 0;
    require(bytes.size() == kGreetingBytes + length + complete.body().size(), "a request has a wrong length");
    decode(complete.body());
  }
  if (piece == 0) return 0;
  // A request that is followed by more bytes is complete before those are read; the listener answers and
  // closes.
  const JoinHandshake pieces = visit(kToken, bytes, piece);
  const bool cut = pieces.state() == State::asked && complete.state() == State::refused;
  require(cut || pieces.state() == complete.state(), "the result depends on the pieces");
  return 0;
}
