// rpc_test.cpp -- calls and replies between two threads, and errors of calls without a reply.
#include "transport/rpc/rpc.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "support/asleep.hpp"
#include "support/expect_error.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::transport {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kTimeout{20000};
constexpr std::uint16_t kDouble = 100;
constexpr std::uint16_t kRefuse = 101;
constexpr std::uint16_t kThrow = 102;
constexpr std::uint16_t kSlow = 103;
constexpr std::uint16_t kWhoAsks = 104;

/// A rank that replies in its own thread until it dies. If it dies during a slow call, it does not reply to
/// that call.
class Answering {
 public:
  Answering(LoopHub& hub, int rank, const Fabric& caller) : fabric_(hub.open()) {
    fabric_->set_rank(rank);
    address_ = fabric_->address();
    Peer& back = fabric_->connect(caller.rank(), "caller", caller.address());
    thread_ = std::jthread([this, &back] {
      {
        RpcServer server(*fabric_, [&back](int) -> Peer& { return back; });
        server.serve(kDouble, [](int, Bytes request) { return to_bytes(2 * from_bytes<int>(request)); });
        server.serve(kRefuse, [](int, Bytes) -> std::vector<std::byte> {
          throw Error(Code::not_found, "no such thing here");
        });
        server.serve(kThrow,
                     [](int, Bytes) -> std::vector<std::byte> { throw std::runtime_error("plain words"); });
        server.serve(kSlow, [this, &server](int from, Bytes) {
          while (!stop_ && !answer_slow_) std::this_thread::yield();
          if (!answer_slow_) server.forget(from);
          return std::vector<std::byte>{};
        });
        server.serve(kWhoAsks, [](int from, Bytes) { return to_bytes(from); });
        while (!stop_) {
          const bool arrived = fabric_->progress() != 0;
          if (!server.answer_pending() && !arrived) fabric_->wait(milliseconds(10));
        }
        fabric_->remove_handlers();
      }
      fabric_.reset();
    });
  }
  ~Answering() { stop_ = true; }
  void die() { stop_ = true; }
  void answer_slow() { answer_slow_ = true; }
  const std::vector<std::byte>& address() const { return address_; }

 private:
  std::unique_ptr<Fabric> fabric_;
  std::vector<std::byte> address_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> answer_slow_{false};
  std::jthread thread_;
};

class RpcTest : public testing::Test {
 protected:
  RpcTest() : fabric_(hub_.open()) { fabric_->set_rank(7); }
  void SetUp() override {
    server_ = std::make_unique<Answering>(hub_, 2, *fabric_);
    client_ = std::make_unique<RpcClient>(*fabric_);
    ps_ = &fabric_->connect(2, "ps 1 (rank 2 on n4)", server_->address());
  }
  int call_double(int value) {
    return from_bytes<int>(client_->call(*ps_, kDouble, to_bytes(value), kTimeout, "double"));
  }
  template <class Call>
  void expect_error(Code code, const std::string& text, const Call& call) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_EQ(std::string(error.what()), text);
    }
  }

  LoopHub hub_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Answering> server_;
  std::unique_ptr<RpcClient> client_;
  Peer* ps_ = nullptr;
};

TEST_F(RpcTest, ReturnsTheReply) {
  EXPECT_EQ(call_double(21), 42);
  EXPECT_EQ(from_bytes<int>(client_->call(*ps_, kWhoAsks, {}, kTimeout, "say who asks")), 7);
}

TEST_F(RpcTest, IgnoresARequestWithoutACallId) {
  for (const std::size_t size : {0, 7, 9}) ps_->send(kDouble, std::vector<std::byte>(size), to_bytes(1));
  EXPECT_EQ(call_double(21), 42);
}

TEST_F(RpcTest, ThrowsTheCodeOfTheHandler) {
  expect_error(Code::not_found, "no such thing here",
               [&] { (void)client_->call(*ps_, kRefuse, {}, kTimeout, "find it"); });
  expect_error(Code::internal, "plain words",
               [&] { (void)client_->call(*ps_, kThrow, {}, kTimeout, "do it"); });
  // Bytes that the handler cannot parse are an error of the caller, too.
  EXPECT_THAT(error_of(Code::data_loss,
                       [&] { (void)client_->call(*ps_, kDouble, to_bytes('x'), kTimeout, "double"); }),
              testing::HasSubstr("3 bytes"));
  EXPECT_EQ(call_double(1), 2);
}

TEST_F(RpcTest, SeveralCallsInFlightMayBeAwaitedInAnyOrder) {
  std::vector<RpcClient::Id> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(client_->start(*ps_, kDouble, to_bytes(i)));
  const auto refused = client_->start(*ps_, kRefuse, {});
  for (int i = 19; i >= 0; --i) {
    EXPECT_EQ(from_bytes<int>(client_->wait(calls[static_cast<std::size_t>(i)], kTimeout, "double")), 2 * i);
  }
  EXPECT_THROW((void)client_->wait(refused, kTimeout, "refuse"), Error);
}

TEST_F(RpcTest, SeveralRanksReplyConcurrently) {
  Answering other(hub_, 3, *fabric_);
  Peer& to_other = fabric_->connect(3, "ps 2", other.address());
  const auto slow = client_->start(*ps_, kSlow, {});
  EXPECT_EQ(from_bytes<int>(client_->call(to_other, kDouble, to_bytes(5), kTimeout, "double")), 10);
  server_->answer_slow();
  EXPECT_TRUE(client_->wait(slow, kTimeout, "take its time").empty());
}

TEST_F(RpcTest, DeadlineExceededNamesPeerAndPurpose) {
  expect_error(Code::deadline_exceeded,
               "no answer from ps 1 (rank 2 on n4) to create variable \"w\" within 30 ms",
               [&] { (void)client_->call(*ps_, kSlow, {}, milliseconds(30), "create variable \"w\""); });
  // The late reply is dropped, and the next call gets its own.
  server_->answer_slow();
  EXPECT_EQ(call_double(3), 6);
}

TEST_F(RpcTest, DeathEndsTheWaitAndNamesTheRank) {
  const auto slow = client_->start(*ps_, kSlow, {});
  const auto another = client_->start(*ps_, kSlow, {});
  server_->die();
  server_.reset();
  for (const auto call : {slow, another}) {
    expect_error(Code::unavailable, "ps 1 (rank 2 on n4) is dead; it was asked to take its time",
                 [&] { (void)client_->wait(call, kTimeout, "take its time"); });
  }
  expect_error(Code::unavailable, "ps 1 (rank 2 on n4) is dead", [&] {
    progress_until(*fabric_, deadline_in(kTimeout), [&] { return ps_->failed(); });
    (void)client_->start(*ps_, kDouble, to_bytes(1));
  });
}

TEST_F(RpcTest, DeathEndsASleepingWait) {
  auto mute = hub_.open();
  mute->set_rank(5);
  Peer& peer = fabric_->connect(5, "ps 3 (rank 5 on n9)", mute->address());
  const auto call = client_->start(peer, kDouble, to_bytes(1));
  const std::jthread killer([&, waiting = gettid()] {
    EXPECT_TRUE(wait_until_asleep(waiting));
    mute.reset();
  });
  expect_error(Code::unavailable, "ps 3 (rank 5 on n9) is dead; it was asked to double",
               [&] { (void)client_->wait(call, kTimeout, "double"); });
  EXPECT_EQ(call_double(4), 8);
}

}  // namespace
}  // namespace capstan::transport
