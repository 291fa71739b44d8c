// join_listener_test.cpp -- the handshake, rejected connections, and the file with the listener's address.
// Tests: src/cluster/bootstrap/socket.cpp
#include "cluster/bootstrap/join_listener.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/bootstrap/connect_to_job.hpp"
#include "cluster/bootstrap/run_directory.hpp"

namespace capstan::cluster {
namespace {

using State = JoinHandshake::State;
using std::chrono::milliseconds;

Token token_of(int first) {
  Token token;
  for (std::size_t i = 0; i < token.size(); ++i) token[i] = std::byte(first + static_cast<int>(i));
  return token;
}

std::vector<std::byte> join_request(const Token& token, std::size_t body) {
  auto bytes = greeting_bytes(JoinRequest::join, token);
  const auto rest = framed(std::vector<std::byte>(body, std::byte{7}));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

/// Returns the state after all bytes, which arrive in pieces of `piece` bytes.
State state_after(JoinHandshake& visit, std::span<const std::byte> bytes, std::size_t piece) {
  while (!bytes.empty() && (visit.state() == State::greeting || visit.state() == State::talking)) {
    visit.take(bytes.first(std::min(piece, bytes.size())));
    bytes = bytes.subspan(std::min(piece, bytes.size()));
  }
  return visit.state();
}

TEST(JoinHandshake, AcceptsARequestInPiecesOfAnySize) {
  const Token token = token_of(1);
  const auto bytes = join_request(token, 100);
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    JoinHandshake visit(token);
    ASSERT_EQ(state_after(visit, bytes, piece), State::asked) << piece;
    EXPECT_EQ(visit.request(), JoinRequest::join);
    EXPECT_EQ(std::vector(visit.body().begin(), visit.body().end()),
              std::vector<std::byte>(100, std::byte{7}));
  }
}

TEST(JoinHandshake, RejectsATokenThatDiffersInAnyByte) {
  const Token token = token_of(1);
  for (std::size_t i = 0; i < kTokenBytes; ++i) {
    Token other = token;
    other[i] ^= std::byte{1};
    EXPECT_FALSE(same(token, other));
    JoinHandshake visit(token);
    EXPECT_EQ(visit.take(greeting_bytes(JoinRequest::status, other)), State::refused);
    JoinHandshake figures(token);
    EXPECT_EQ(figures.take(greeting_bytes(JoinRequest::metrics, other)), State::refused);
    EXPECT_EQ(visit.reason(), "wrong token");
  }
  EXPECT_TRUE(same(token, token_of(1)));
}

TEST(JoinHandshake, RejectsAnInvalidRequestWithoutWaitingForTheRest) {
  const Token token = token_of(1);
  for (const std::string text : {"G", "GET / HTTP/1.1", "\xff\xff\xff\xff"}) {
    JoinHandshake visit(token);
    EXPECT_EQ(visit.take(std::as_bytes(std::span(text))), State::refused) << text;
  }
  JoinHandshake unknown(token);
  EXPECT_EQ(unknown.take(greeting_bytes(static_cast<JoinRequest>(9), token)), State::refused);
}

TEST(JoinHandshake, RejectsABodyThatIsTooLong) {
  const Token token = token_of(1);
  JoinHandshake fits(token);
  EXPECT_EQ(state_after(fits, join_request(token, kMaxBodyBytes), 4096), State::asked);
  JoinHandshake too_long(token);
  EXPECT_EQ(state_after(too_long, join_request(token, kMaxBodyBytes + 1), 4096), State::refused);
  auto more = greeting_bytes(JoinRequest::status, token);
  more.push_back(std::byte{0});
  JoinHandshake trailing(token);
  EXPECT_EQ(trailing.take(more), State::refused);
}

/// A connection that sends the bytes that the test chooses.
class Caller {
 public:
  explicit Caller(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in to = address_in(address);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  void send_bytes(std::span<const std::byte> bytes) {
    (void)send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Returns the bytes of one read of at most `most` bytes; 0 once the listener has closed the connection.
  std::size_t take(std::size_t most) {
    std::vector<std::byte> piece(most);
    return static_cast<std::size_t>(std::max<ssize_t>(0, recv(socket_.get(), piece.data(), most, 0)));
  }
  /// Returns whether the listener closes this connection within the time without sending anything.
  bool closed_silently(milliseconds within) {
    pollfd one{socket_.get(), POLLIN, 0};
    if (poll(&one, 1, static_cast<int>(within.count())) != 1) return false;
    std::byte word;
    return recv(socket_.get(), &word, 1, 0) <= 0;
  }

 private:
  Socket socket_;
};

JoinAnswer echo(JoinRequest request, std::span<const std::byte> body) {
  if (request == JoinRequest::status) return {Code::ok, "all is well", {}};
  if (body.empty()) throw Error(Code::invalid_argument, "an empty body");
  return {Code::ok, {}, {body.begin(), body.end()}};
}

JoinAnswer ask(const JoinListener& listener, const Token& token, JoinRequest request = JoinRequest::status,
               std::span<const std::byte> body = {}) {
  return ask_join_listener(listener.address(), token, request, body,
                           std::chrono::steady_clock::now() + std::chrono::seconds(20));
}

TEST(JoinListener, AnswersAConnectionWithTheToken) {
  const JoinListener listener("127.0.0.1", token_of(1), echo);
  EXPECT_EQ(ask(listener, token_of(1)).message, "all is well");
  const std::vector<std::byte> body(kMaxBodyBytes, std::byte{3});
  EXPECT_EQ(ask(listener, token_of(1), JoinRequest::join, body).bytes, body);
  const JoinAnswer refused = ask(listener, token_of(1), JoinRequest::join);
  EXPECT_EQ(refused.code, Code::invalid_argument);
  EXPECT_EQ(refused.message, "an empty body");
}

TEST(JoinListener, ClosesAConnectionWithAWrongToken) {
  const JoinListener listener("127.0.0.1", token_of(1), echo);
  // If the listener does not read the body, the network decides how the connection ends.
  const std::vector<std::byte> body(kMaxBodyBytes, std::byte{3});
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, body.size()}) {
    try {
      (void)ask(listener, token_of(2), JoinRequest::join, std::span(body).first(size));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unavailable);
      EXPECT_EQ(error.what(), "the coordinator's join listener at " + listener.address() +
                                  ": it closed the connection (wrong token?)");
    }
  }
  Caller garbage(listener.address());
  garbage.send_bytes(std::vector<std::byte>(1000, std::byte{0xaa}));
  EXPECT_TRUE(garbage.closed_silently(milliseconds(20000)));
}

TEST(JoinListener, ClosesASilentConnectionAfterTheTimeout) {
  const JoinListener listener("127.0.0.1", token_of(1), echo, [] {}, {milliseconds(100), 64, 64});
  Caller silent(listener.address());
  Caller slow(listener.address());
  slow.send_bytes(greeting_bytes(JoinRequest::join, token_of(1)));
  EXPECT_TRUE(silent.closed_silently(milliseconds(20000)));
  EXPECT_TRUE(slow.closed_silently(milliseconds(20000))) << "the timeout is the same with the token";
}

/// Exceeds the buffers of two sockets.
constexpr std::size_t kLong = 64 << 20;

JoinAnswer at_length(JoinRequest, std::span<const std::byte>) {
  std::vector<std::byte> bytes(kLong);
  for (std::size_t i = 0; i < kLong; ++i) bytes[i] = std::byte(i % 251);
  return {Code::ok, {}, std::move(bytes)};
}

TEST(JoinListener, LongReplyArrivesCompletely) {
  const JoinListener listener("127.0.0.1", token_of(1), at_length);
  EXPECT_EQ(ask(listener, token_of(1)).bytes, at_length(JoinRequest::status, {}).bytes);
}

TEST(JoinListener, SlowReaderOfALongReplyMayExceedTheTimeout) {
  constexpr milliseconds kTimeout{2000};
  const JoinListener listener("127.0.0.1", token_of(1), at_length, [] {}, {kTimeout, 64, 64});
  Caller slow(listener.address());
  slow.send_bytes(greeting_bytes(JoinRequest::status, token_of(1)));
  const auto begin = std::chrono::steady_clock::now();
  std::size_t taken = 0;
  while (true) {
    const std::size_t got = slow.take(1 << 20);
    if (got == 0) break;
    taken += got;
    if (std::chrono::steady_clock::now() > begin + kTimeout * 5 / 4) continue;
    ASSERT_LT(taken, kLong) << "the reader was too fast for this test";
    std::this_thread::sleep_for(kTimeout / 40);  // the slow reader
  }
  EXPECT_GE(taken, kLong);
}

TEST(JoinListener, EvictsTheOldestUnauthenticatedConnection) {
  const JoinListener listener("127.0.0.1", token_of(1), echo, [] {}, {std::chrono::minutes(10), 2, 64});
  Caller first(listener.address());
  Caller second(listener.address());
  EXPECT_FALSE(first.closed_silently(milliseconds(50)));
  Caller third(listener.address());
  EXPECT_TRUE(first.closed_silently(milliseconds(20000)));
  EXPECT_FALSE(second.closed_silently(milliseconds(50)));
  EXPECT_EQ(ask(listener, token_of(1)).message, "all is well")
      << "unauthenticated connections do not block others";
}

TEST(JoinListener, DestructorClosesAllConnections) {
  auto listener = std::make_unique<JoinListener>("127.0.0.1", token_of(1), echo);
  Caller silent(listener->address());
  const std::string address = listener->address();
  listener.reset();
  EXPECT_TRUE(silent.closed_silently(milliseconds(20000)));
  EXPECT_THROW((void)ask_join_listener(address, token_of(1), JoinRequest::status, {},
                                       std::chrono::steady_clock::now() + std::chrono::seconds(20)),
               Error);
}

TEST(JoinListener, RejectsAnInvalidAddress) {
  EXPECT_THROW(JoinListener("127.0.0.1:port", token_of(1), echo), Error);
  EXPECT_THROW(JoinListener("no such host", token_of(1), echo), Error);
}

class RunDirectory : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / ("run-" + std::to_string(getpid()));
    file_ = run_file_of_this_process();
    file_.address = "127.0.0.1:4711";
    write_run_file(directory_, file_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  Code refusal() const {
    try {
      (void)read_run_file(directory_);
      return Code::ok;
    } catch (const Error& error) {
      return error.code();
    }
  }

  std::filesystem::path directory_;
  RunFile file_;
};

TEST_F(RunDirectory, RecordsHowThisProcessWasStarted) {
  const RunFile read = read_run_file(directory_);
  EXPECT_EQ(read.address, "127.0.0.1:4711");
  EXPECT_EQ(read.pid, getpid());
  EXPECT_TRUE(same(read.token, file_.token));
  EXPECT_EQ(read.program, std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(read.arguments, file_.arguments);
  EXPECT_FALSE(read.arguments.empty());
  EXPECT_EQ(read.directory, std::filesystem::current_path());
  EXPECT_FALSE(same(random_token(), random_token()));
}

TEST_F(RunDirectory, IsReadableByItsOwnerOnly) {
  struct stat status {};
  ASSERT_EQ(stat((directory_ / "cluster.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  ASSERT_EQ(chmod((directory_ / "cluster.json").c_str(), 0640), 0);
  EXPECT_EQ(refusal(), Code::permission_denied);
}

TEST_F(RunDirectory, IsRemovedByTheProcessThatWroteIt) {
  remove_run_file(directory_, file_.host, file_.pid + 1);
  EXPECT_EQ(refusal(), Code::ok);
  remove_run_file(directory_, file_.host, file_.pid);
  EXPECT_EQ(refusal(), Code::not_found);
}

TEST_F(RunDirectory, NamesADamagedFile) {
  std::string deep;  // valid except for its depth
  std::getline(std::ifstream(directory_ / "cluster.json"), deep, '\0');
  deep.insert(deep.find('{') + 1, "\"more\": " + std::string(200'000, '[') + std::string(200'000, ']') + ",");
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1"), std::string(R"({"version": 2})"),
        std::string(R"({"version": 1, "host": 3})"), deep}) {
    std::ofstream(directory_ / "cluster.json", std::ios::trunc) << text;
    EXPECT_EQ(refusal(), Code::data_loss) << text;
  }
}

}  // namespace
}  // namespace capstan::cluster
