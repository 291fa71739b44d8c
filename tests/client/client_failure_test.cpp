// client_failure_test.cpp -- a ps that is slow, hangs or dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "client/client_fixture.hpp"
#include "ps/server/ps_server.hpp"
#include "support/poll.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::client {
namespace {

using std::chrono::milliseconds;
constexpr std::uint16_t kStall = 200;
constexpr std::size_t kUntilReleased = 0;
std::atomic<int> stalls{0};  // that have started
std::atomic<int> stalls_ended{0};
std::atomic<bool> released{false};

/// A ps that stalls for as many milliseconds as a message has bytes, or, if it has none, until `released`.
int ps_that_stalls(const std::shared_ptr<cluster::Runtime>& runtime) {
  ps::PsServer server(runtime);
  runtime->control().on_message(kStall, [](const transport::Message& message) {
    ++stalls;
    if (message.payload.size() == kUntilReleased) {
      poll_until([] { return released.load(); });
    } else {
      std::this_thread::sleep_for(milliseconds(message.payload.size()));  // the stall that the test requests
    }
    ++stalls_ended;
  });
  server.run();
  return 0;
}

int ps_that_ignores_reads(const std::shared_ptr<cluster::Runtime>& runtime) {
  ps::PsServer server(runtime);
  runtime->control().on_message(transport::kReadRows, [](const transport::Message&) {});
  server.run();
  return 0;
}

class ClientFailureTest : public ClientFixture {
 protected:
  RankThreadsOptions options(const std::string& timeout) {
    RankThreadsOptions out{.ranks = 4,
                           .flags = {{"ps", "2"}, {"push-ring-bytes", "64KiB"}, {"wait-timeout", timeout}}};
    out.ps = ps_that_stalls;
    return out;
  }
  std::string ps_name(int index) const { return ranks_->runtime().member(Role::ps, index).name(); }
  /// Returns once the ps stalls: later pushes are not applied before the stall ends.
  void stall(int ps, std::size_t time) {
    const int before = stalls;
    released = false;
    client().connections().at(ps).peer().send(kStall, {}, std::vector<std::byte>(time));
    ASSERT_TRUE(transport::progress_until(ranks_->runtime().data(),
                                          transport::deadline_in(std::chrono::seconds(20)),
                                          [before] { return stalls != before; }));
  }
};

TEST_P(ClientFailureTest, SlowPsBlocksThePusherAndLosesNothing) {
  start(options("20s"), 1);
  const auto v = create("w", DType::float32, {1000});
  const std::vector<float> ones(1000, 1);
  client().push_dense(v, ones.data());
  client().flush();
  const int ended_before = stalls_ended;
  stall(v.shards[0].ps, 150);
  // 800 KB through a ring of 64 KiB, or with at most 512 KiB of messages in flight.
  for (int push = 0; push < 200; ++push) client().push_dense(v, ones.data());
  EXPECT_GT(stalls_ended, ended_before) << "the pusher did not block";
  client().flush();
  EXPECT_EQ(pull<float>(v), std::vector<float>(1000, 201));
}

TEST_P(ClientFailureTest, HangingPsIsNamedByDeadlineExceededAndOthersStayUsable) {
  start(options("3s"), 1);
  const auto v = create("w", DType::float32, {1000});
  const auto w = create("other", DType::float32, {1000});
  ASSERT_NE(v.shards[0].ps, w.shards[0].ps);
  const std::vector<float> ones(1000, 1);
  client().push_dense(v, ones.data());
  client().push_dense(w, ones.data());
  client().flush();
  stall(v.shards[0].ps, kUntilReleased);
  const auto waited = "waited 3000 ms for " + ps_name(v.shards[0].ps) + " to ";
  expect_error(Code::deadline_exceeded, waited + "free its push ring", [&] {
    for (int push = 0; push < 200; ++push) client().push_dense(v, ones.data());
  });
  expect_error(Code::deadline_exceeded, waited + "apply pushes", [&] { client().flush(); });
  client().push_dense(w, ones.data());
  client().connections().at(w.shards[0].ps).flush();
  EXPECT_EQ(pull<float>(w), std::vector<float>(1000, 2));
  released = true;
}

TEST_P(ClientFailureTest, WaitDoesNotDependOnPushesToOtherPs) {
  start(options("20s"), 1);
  const auto v = create("w", DType::float32, {1000});
  const auto w = create("other", DType::float32, {1000});
  const std::vector<float> ones(1000, 1);
  client().push_dense(v, ones.data());
  client().push_dense(w, ones.data());
  client().flush();
  stall(v.shards[0].ps, kUntilReleased);
  client().push_dense(v, ones.data());
  const auto slow = client().pushed(v);
  client().push_dense(w, ones.data());
  client().wait(client().pushed(w));
  EXPECT_TRUE(client().applied(client().pushed(w)));
  EXPECT_EQ(pull<float>(w), std::vector<float>(1000, 2));
  EXPECT_FALSE(client().applied(slow));
  released = true;
  ASSERT_TRUE(poll_until([&] { return client().applied(slow); }));
  client().wait(slow);
  EXPECT_EQ(pull<float>(v), std::vector<float>(1000, 2));
}

TEST_P(ClientFailureTest, WaitEndsIfThePsDies) {
  start(options("20s"), 1);
  const auto v = create("w", DType::float32, {1000});
  const std::vector<float> ones(1000, 1);
  client().push_dense(v, ones.data());
  client().flush();
  const int dead = v.shards[0].ps;
  stall(dead, kUntilReleased);
  client().push_dense(v, ones.data());
  const auto pushed = client().pushed(v);
  auto& runtime = ranks_->runtime();
  runtime.control_peer(runtime.member(Role::ps, dead)).send(transport::kShutdown, {});
  runtime.control().progress();
  released = true;
  // The ps may apply the push before it receives kShutdown.
  ASSERT_TRUE(transport::progress_until(runtime.data(), transport::deadline_in(std::chrono::seconds(20)),
                                        [&] { return client().connections().at(dead).peer().failed(); }));
  EXPECT_TRUE(client().applied(pushed));
  try {
    client().wait(pushed);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
  }
}

TEST_P(ClientFailureTest, DeadPsIsNamedByEveryCallAndOthersStayUsable) {
  start(options("20s"), 1);
  const auto v = create("w", DType::float32, {1000});
  const auto w = create("other", DType::float32, {1000});
  std::vector<float> ones(1000, 1);
  client().push_dense(v, ones.data());
  client().push_dense(w, ones.data());
  client().flush();
  const int dead = v.shards[0].ps;
  auto& runtime = ranks_->runtime();
  runtime.control_peer(runtime.member(Role::ps, dead)).send(transport::kShutdown, {});
  runtime.control().progress();
  ASSERT_TRUE(transport::progress_until(runtime.data(), transport::deadline_in(std::chrono::seconds(20)),
                                        [&] { return client().connections().at(dead).peer().failed(); }));
  const std::vector<std::int64_t> ids{5};
  const auto is_dead = ps_name(dead) + " is dead";
  expect_error(Code::unavailable, is_dead, [&] { client().lookup(v, ids, ones.data()); });
  expect_error(Code::unavailable, is_dead, [&] { client().pull(v, 0, 1, ones.data()); });
  expect_error(Code::unavailable, is_dead, [&] { client().push(v, ids, ones.data()); });
  expect_error(Code::unavailable, is_dead, [&] { client().push_dense(v, ones.data()); });
  expect_error(Code::unavailable, is_dead,
               [&] { client().update(v, protocol::RowOp::set, 0, 1, ones.data()); });
  expect_error(Code::unavailable, is_dead, [&] { client().fetch_add(dead, 0, 1); });
  expect_error(Code::unavailable, is_dead, [&] { (void)client().connections().live_connection(dead); });
  EXPECT_TRUE(client().connections().at(w.shards[0].ps).reconnect_if_dead());
  client().push_dense(w, std::vector<float>(1000, 1).data());
  client().flush();
  EXPECT_EQ(pull<float>(w), std::vector<float>(1000, 2));
}

TEST_P(ClientFailureTest, PushAndFlushThrowIfThePsDies) {
  start(options("20s"), 1);
  const auto v = create("w", DType::float32, {1000});
  const std::vector<float> ones(1000, 1);
  client().push_dense(v, ones.data());
  client().flush();
  const int dead = v.shards[0].ps;
  stall(dead, 100);
  auto& runtime = ranks_->runtime();
  runtime.control_peer(runtime.member(Role::ps, dead)).send(transport::kShutdown, {});
  runtime.control().progress();
  // The ps may apply some pushes before it receives kShutdown.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  expect_error(Code::unavailable, ps_name(dead) + " is dead", [&] {
    while (std::chrono::steady_clock::now() < until) {
      for (int push = 0; push < 100; ++push) client().push_dense(v, ones.data());
      client().flush();
    }
  });
}

/// Simulates a worker that was stopped, fenced and resumed.
TEST_P(ClientFailureTest, RejectsPushesFromFencedRank) {
  start(options("20s"), 1);
  const auto v = create("w", DType::float32, {1000});
  const std::vector<float> ones(1000, 1);
  client().push_dense(v, ones.data());
  client().flush();
  const int ps = v.shards[0].ps;
  client().fetch_add(ps, 0, 1);
  auto& runtime = ranks_->runtime();
  bool closed = false;
  runtime.control().on_message(transport::kWorkerClosed, [&](const transport::Message&) { closed = true; });
  runtime.control_peer(runtime.member(Role::ps, ps))
      .send(transport::kWorkerDead, transport::as_bytes(protocol::WorkerDead{runtime.self().rank, 1}));
  ASSERT_TRUE(transport::progress_until(runtime.control(), transport::deadline_in(std::chrono::seconds(20)),
                                        [&] { return closed; }));
  const auto push_and_flush = [&] {
    for (int push = 0; push < 50; ++push) client().push_dense(v, ones.data());  // more than fits the ring
    client().flush();
  };
  (void)error_of(Code::aborted, push_and_flush);
  (void)error_of(Code::aborted, push_and_flush);
  (void)error_of(Code::aborted, [&] { client().fetch_add(ps, 0, 1); });
  EXPECT_EQ(pull<float>(v), ones);
}

/// Reads that stay in flight.
class ReadInFlightTest : public ClientFailureTest {};

TEST_P(ReadInFlightTest, IsReadyAndThrowsAfterTheDeathOfThePs) {
  auto no_reads = options("20s");
  no_reads.ps = ps_that_ignores_reads;
  start(no_reads, 1);
  const auto v = create("w", DType::float32, {1000});
  const int dead = v.shards[0].ps;
  std::vector<float> values(1000);
  const Client::Lookup all{&v, {}, values.data(), 0, v.rows()};
  const auto reading = client().start({&all, 1});
  EXPECT_FALSE(client().ready(reading));
  auto& runtime = ranks_->runtime();
  runtime.control_peer(runtime.member(Role::ps, dead)).send(transport::kShutdown, {});
  runtime.control().progress();
  const auto deadline = transport::deadline_in(std::chrono::seconds(20));
  while (!client().ready(reading)) ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "never ready";
  expect_error(Code::unavailable, ps_name(dead) + " is dead; it was asked to read rows",
               [&] { client().finish(reading); });
}

INSTANTIATE_TEST_SUITE_P(Paths, ReadInFlightTest, testing::Values(PathParam{Network::loop, "am"}), path_name);
INSTANTIATE_TEST_SUITE_P(Paths, ClientFailureTest,
                         testing::Values(PathParam{Network::loop, "auto"}, PathParam{Network::loop, "rma"},
                                         PathParam{Network::loop, "am"}),
                         path_name);

}  // namespace
}  // namespace capstan::client
