// receiver_test.cpp -- reads by messages, whose rows arrive while the program does not call Capstan.
#include "strategy/receiver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "capstan/replica.hpp"
#include "capstan/strategy.hpp"
#include "capstan/variable.hpp"
#include "ps/server/ps_server.hpp"
#include "strategy/context.hpp"
#include "support/expect_error.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace {

using ReadIds = std::vector<std::int64_t>;
constexpr std::int64_t kReceivedRows = 500, kReceivedWidth = 16;

/// A ps that never answers a read.
int ps_without_reads(const std::shared_ptr<cluster::Runtime>& runtime) {
  ps::PsServer server(runtime);
  runtime->control().on_message(transport::kReadRows, [](const transport::Message&) {});
  server.run();
  return 0;
}

class ReceiverTest : public testing::TestWithParam<Network> {
 protected:
  void start(RankThreadsOptions options = {}) {
    options.network = GetParam();
    options.flags.emplace_back("ps", "2");
    options.flags.emplace_back("window", "am");
    ranks_ = std::make_unique<RankThreads>(std::move(options));
    strategy_ = std::make_unique<ParameterServerStrategy>(
        ranks_->cluster(), StrategyOptions{.variable_partitioner = FixedShardsPartitioner{2}});
    scope_ = std::make_unique<ParameterServerStrategy::Scope>(&strategy_->implementation());
  }
  void TearDown() override {
    scope_.reset();
    strategy_.reset();
    ranks_.reset();
  }

  /// A variable whose element i is i, and to which a push adds the gradient.
  static Variable<float> numbered(const std::string& name = "v") {
    const Variable<float> v(name, Shape{kReceivedRows, kReceivedWidth}, initializers::zeros(),
                            {.optimizer = optimizers::SGD{.learning_rate = -1}});
    std::vector<float> values(kReceivedRows * kReceivedWidth);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return v.assign(values);
  }
  static std::vector<float> unread(std::size_t rows) { return std::vector<float>(rows * kReceivedWidth, -1); }
  static std::vector<float> numbers(const ReadIds& ids) {
    std::vector<float> values;
    for (const std::int64_t id : ids) {
      for (std::int64_t i = 0; i < kReceivedWidth; ++i)
        values.push_back(static_cast<float>(id * kReceivedWidth + i));
    }
    return values;
  }
  static strategy::Receiver& receiver(const Variable<float>& v) { return v.bound()->context->receiver(); }
  static bool becomes_idle(const Variable<float>& v) {
    return poll_until([&] { return !receiver(v).active(); });
  }

  std::unique_ptr<RankThreads> ranks_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<ParameterServerStrategy::Scope> scope_;
};

TEST_P(ReceiverTest, StoresRowsWhileTheProgramMakesNoCall) {
  start();
  const Variable<float> v = numbered();
  const ReadIds ids{3, 499, 250, 3, 0};
  for (int round = 0; round < 20; ++round) {
    std::vector<float> out = unread(ids.size());
    std::vector<float> all = unread(kReceivedRows);
    Pending rows = v.lookup_async(ids, out);
    Pending everything = v.pull_async(0, all);
    ASSERT_TRUE(becomes_idle(v));
    ASSERT_EQ(out, numbers(ids));
    ASSERT_EQ(all.back(), kReceivedRows * kReceivedWidth - 1);
    EXPECT_TRUE(rows.ready());
    everything.wait();
    rows.wait();
  }
}

TEST_P(ReceiverTest, ReceivesAmongPushesAndFlushes) {
  start();
  const Variable<float> v("sums", Shape{kReceivedRows, kReceivedWidth}, initializers::zeros(),
                          {.optimizer = optimizers::SGD{.learning_rate = -1}});
  struct Read {
    ReadIds ids;
    std::vector<float> at_least;  // by id, flushed before the read started
    std::vector<float> out;
    Pending pending;
  };
  std::vector<float> pushed(kReceivedRows), flushed(kReceivedRows);
  std::deque<Read> reads;
  std::mt19937 random(1);
  const auto finish_first = [&] {
    Read& read = reads.front();
    read.pending.wait();
    for (std::size_t i = 0; i < read.ids.size(); ++i) {
      for (std::size_t j = 0; j < kReceivedWidth; ++j) {
        const float value = read.out[i * kReceivedWidth + j];
        ASSERT_GE(value, read.at_least[i]);
        ASSERT_LE(value, pushed[static_cast<std::size_t>(read.ids[i])]);
      }
    }
    reads.pop_front();
  };
  for (int step = 0; step < 300; ++step) {
    Read& read = reads.emplace_back();
    for (int i = 0; i < 20; ++i) {
      read.ids.push_back(static_cast<std::int64_t>(random() % kReceivedRows));
      read.at_least.push_back(flushed[static_cast<std::size_t>(read.ids.back())]);
    }
    read.out = unread(read.ids.size());
    read.pending = v.lookup_async(read.ids, read.out);
    const auto id = static_cast<std::int64_t>(random() % kReceivedRows);
    v.push(ReadIds{id}, std::vector<float>(kReceivedWidth, 1));
    ++pushed[static_cast<std::size_t>(id)];
    if (step % 5 == 0) {
      v.flush();
      flushed = pushed;
    }
    if (reads.size() == 8) finish_first();
  }
  while (!reads.empty()) finish_first();
  v.flush();
  const auto sums = v.pull();
  for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], pushed[i / kReceivedWidth]) << i;
}

TEST_P(ReceiverTest, ReceivesForSeveralReplicas) {
  RankThreadsOptions options;
  options.flags.emplace_back("replicas", "2");
  start(options);
  const Variable<float> v = numbered();
  strategy_->run([&](ReplicaContext& replica) {
    for (std::int64_t round = 0; round < 50; ++round) {
      const ReadIds ids{round, replica.replica_id_in_sync_group() * 100 + round};
      std::vector<float> out = unread(ids.size());
      Pending rows = v.lookup_async(ids, out);
      rows.wait();
      ASSERT_EQ(out, numbers(ids));
    }
  });
  EXPECT_TRUE(becomes_idle(v));
}

TEST_P(ReceiverTest, StoresNoRowsOfCancelledReads) {
  start();
  const Variable<float> v = numbered();
  const ReadIds ids{1, 2, 3, 400};
  for (int round = 0; round < 50; ++round) {
    std::vector<float> out = unread(ids.size());
    { const Pending cancelled = v.lookup_async(ids, out); }
    std::fill(out.begin(), out.end(), -2.0F);
    const std::vector<float> read = v.lookup(ids).values;
    ASSERT_EQ(read, numbers(ids));
    ASSERT_EQ(out, std::vector<float>(out.size(), -2));
  }
  EXPECT_TRUE(becomes_idle(v));
}

TEST_P(ReceiverTest, EndsWithItsContextWhileAReadIsInFlight) {
  RankThreadsOptions options;
  options.ps = ps_without_reads;
  start(options);
  const Variable<float> v("v", Shape{kReceivedRows, kReceivedWidth});
  std::vector<float> out = unread(1);
  {
    const Pending never = v.lookup_async(ReadIds{7}, out);
    EXPECT_FALSE(never.ready());
    EXPECT_TRUE(receiver(v).active());
  }
  TearDown();
  EXPECT_EQ(out, unread(1));
}

TEST_P(ReceiverTest, EndsWhileAReadIsInFlight) {
  RankThreadsOptions options;
  options.ps = ps_without_reads;
  start(options);
  const Variable<float> v("v", Shape{kReceivedRows, kReceivedWidth});
  client::Client& client = v.bound()->context->client();
  std::vector<float> out = unread(1);
  const ReadIds ids{7};
  const client::Client::Lookup lookup{&v.bound()->descriptor, ids, out.data()};
  const client::Client::Reading never = client.start({&lookup, 1});
  {
    strategy::Receiver ends(client);
    ends.start();
    EXPECT_TRUE(ends.active());
  }
  EXPECT_TRUE(client.reads_in_flight());
  client.cancel(never);
}

TEST_P(ReceiverTest, DeathOfThePsEndsReadsInFlight) {
  RankThreadsOptions options;
  options.ps = ps_without_reads;
  start(options);
  const Variable<float> v("v", Shape{kReceivedRows, kReceivedWidth});
  std::vector<float> out = unread(1);
  Pending rows = v.lookup_async(ReadIds{7}, out);
  const int dead = v.bound()->descriptor.shards[0].ps;
  EXPECT_TRUE(receiver(v).active());
  auto& runtime = ranks_->runtime();
  runtime.control_peer(runtime.member(Role::ps, dead)).send(transport::kShutdown, {});
  ASSERT_TRUE(poll_until([&] {
    runtime.control().progress();  // sends the message; the data fabric is left to the receiver
    return !receiver(v).active();
  }));
  EXPECT_TRUE(rows.ready());
  expect_error_naming(Code::unavailable, {runtime.member(Role::ps, dead).name()}, [&] { rows.wait(); });
}

INSTANTIATE_TEST_SUITE_P(Networks, ReceiverTest, testing::Values(Network::loop, Network::ucx),
                         [](const auto& info) { return info.param == Network::loop ? "loop" : "ucx"; });

}  // namespace
}  // namespace capstan
