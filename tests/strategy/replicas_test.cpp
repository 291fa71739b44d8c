// replicas_test.cpp -- replica threads: reuse between runs, collectives, and errors.
// Tests: src/strategy/current_replica.hpp
// Tests: src/strategy/replica_group.cpp
#include "capstan/replica.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "capstan/capstan.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;
using Ids = std::vector<std::int64_t>;

class ReplicasTest : public testing::TestWithParam<int> {
 protected:
  static RankThreadsOptions options() {
    return {.ranks = 4,
            .flags = {{"ps", "2"}, {"replicas", std::to_string(GetParam())}, {"wait-timeout", "20s"}}};
  }
  ReplicasTest() { strategy_.allow_run_without_coordinator(); }

  const int n_ = GetParam();
  RankThreads ranks_{options()};
  ParameterServerStrategy strategy_{ranks_.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}}};
};

INSTANTIATE_TEST_SUITE_P(Replicas, ReplicasTest, testing::Values(1, 2, 4));

TEST_P(ReplicasTest, ReuseThreadsBetweenRuns) {
  const auto ids = [&] {
    std::set<std::thread::id> all;
    for (const auto id : strategy_.run([] { return std::this_thread::get_id(); })) all.insert(id);
    return all;
  };
  const auto first = ids();
  EXPECT_EQ(first.size(), static_cast<std::size_t>(n_));
  EXPECT_TRUE(first.contains(std::this_thread::get_id()));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ids(), first);
}

TEST_P(ReplicasTest, OrderResultsByReplica) {
  const auto numbers =
      strategy_.run([](ReplicaContext& replica) { return replica.replica_id_in_sync_group(); });
  ASSERT_EQ(numbers.size(), static_cast<std::size_t>(n_));
  for (int replica = 0; replica < n_; ++replica)
    EXPECT_EQ(numbers[static_cast<std::size_t>(replica)], replica);
  const auto nothing = [](double) {};
  static_assert(std::is_void_v<decltype(strategy_.run(nothing, 1.0))>);
  strategy_.run(nothing, 1.0);
}

TEST_P(ReplicasTest, UnpackPerReplicaArgumentsAtAnyDepth) {
  const auto per_replica = strategy_.distribute_values_from_function(
      [](ValueContext context) { return 10 * context.replica_id_in_sync_group; });
  const std::tuple<PerReplica<int>, std::string> pair{per_replica, "x"};
  const std::map<std::string, PerReplica<int>> map{{"k", per_replica}};
  const auto sums = strategy_.run(
      [](ReplicaContext& replica, int a, const std::tuple<int, std::string>& b,
         const std::map<std::string, int>& c, int plain) {
        EXPECT_EQ(a, 10 * replica.replica_id_in_sync_group());
        EXPECT_EQ(std::get<1>(b), "x");
        return a + std::get<0>(b) + c.at("k") + plain;
      },
      per_replica, pair, map, 7);
  for (int replica = 0; replica < n_; ++replica) {
    EXPECT_EQ(sums[static_cast<std::size_t>(replica)], 30 * replica + 7);
  }
  const PerReplica<int> wrong{std::vector<int>(static_cast<std::size_t>(n_) + 1)};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { strategy_.run([](int) {}, wrong); }),
              HasSubstr(std::to_string(n_ + 1) + " replicas, expected " + std::to_string(n_)));
}

TEST_P(ReplicasTest, ThrowTheErrorOfTheLowestReplica) {
  const auto fail_from = [&](int first) {
    return error_of(Code::not_found, [&] {
      strategy_.run([first](ReplicaContext& replica) {
        const int id = replica.replica_id_in_sync_group();
        if (id >= first) throw Error(Code::not_found, "replica " + std::to_string(id));
      });
    });
  };
  for (int first = 0; first < n_; ++first) EXPECT_EQ(fail_from(first), "replica " + std::to_string(first));
  EXPECT_THROW(strategy_.run([] { throw 5; }), int);
  EXPECT_EQ(strategy_.reduce(ReduceOp::SUM, strategy_.run([] { return 1; })), n_);  // the next run works
}

TEST_P(ReplicasTest, FailedReplicaReleasesWaitingReplicas) {
  for (int bad = 0; bad < n_; ++bad) {
    std::atomic<int> aborted{0};
    const std::string error = error_of(Code::data_loss, [&] {
      strategy_.run([&](ReplicaContext& replica) {
        if (replica.replica_id_in_sync_group() == bad) throw Error(Code::data_loss, "a bad record");
        try {
          static_cast<void>(replica.all_reduce(ReduceOp::SUM, 1));
        } catch (const Error& stopped) {
          if (stopped.code() == Code::aborted) ++aborted;
          throw;
        }
      });
    });
    EXPECT_EQ(error, "a bad record");
    EXPECT_EQ(aborted, n_ - 1);
  }
}

TEST_P(ReplicasTest, RejectMismatchedCalls) {
  if (n_ == 1) return;
  const auto run = [&](auto odd) {
    return error_of(Code::failed_precondition, [&] {
      strategy_.run([&](ReplicaContext& replica) {
        if (replica.replica_id_in_sync_group() == 1) {
          odd(replica);
        } else {
          static_cast<void>(replica.all_reduce(ReduceOp::SUM, 1));
        }
      });
    });
  };
  EXPECT_THAT(run([](ReplicaContext& replica) { static_cast<void>(replica.all_reduce("mean", 1)); }),
              NamesAll({"replica 1", "all_reduce MEAN", "replica 0", "all_reduce SUM"}));
  EXPECT_THAT(run([](ReplicaContext& replica) { static_cast<void>(replica.all_reduce(ReduceOp::SUM, 1.0)); }),
              NamesAll({"replica 1", "all_reduce SUM", "replica 0", "type"}));
  EXPECT_THAT(run([](ReplicaContext&) {}), NamesAll({"replica 1", "all_reduce SUM", "returned"}));
}

TEST_P(ReplicasTest, CollectiveErrorReachesEveryReplica) {
  const auto sums = strategy_.run([](ReplicaContext& replica) {
    const auto rows = replica.replica_id_in_sync_group() + 1;
    try {
      static_cast<void>(replica.all_reduce(ReduceOp::SUM, Array<float>(Shape{rows})));
      EXPECT_EQ(replica.num_replicas_in_sync(), 1);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
    }
    return replica.all_reduce(ReduceOp::SUM, 1);
  });
  for (const int sum : sums) EXPECT_EQ(sum, n_);
}

TEST_P(ReplicasTest, RejectNestedRuns) {
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { strategy_.run([&] { strategy_.run([] {}); }); }),
              NamesAll({"inside of run"}));
  EXPECT_THAT(error_of(Code::failed_precondition,
                       [&] {
                         strategy_.run([](ReplicaContext& replica) {
                           replica.merge_call([](Replicas& replicas) { replicas.run([] {}); });
                         });
                       }),
              NamesAll({"run"}));
}

TEST_P(ReplicasTest, MergeCallRunsOnce) {
  std::atomic<int> calls{0};
  const auto results = strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    return replica.merge_call(
        [&](Replicas& replicas, const PerReplica<int>& ids, const PerReplica<std::string>& words) {
          ++calls;
          EXPECT_FALSE(in_replica_context());
          EXPECT_EQ(words[words.size() - 1], "w" + std::to_string(n_ - 1));
          return replicas.reduce(ReduceOp::SUM, ids) + 1000;
        },
        id, "w" + std::to_string(id));
  });
  EXPECT_EQ(calls, 1);
  for (const int result : results) EXPECT_EQ(result, n_ * (n_ - 1) / 2 + 1000);

  const auto doubled = strategy_.run([&](ReplicaContext& replica) {
    return replica.merge_call(
        [](PerReplica<int> ids) {
          for (int& id : ids.values) id *= 2;
          return ids;
        },
        replica.replica_id_in_sync_group());
  });
  for (int replica = 0; replica < n_; ++replica)
    EXPECT_EQ(doubled[static_cast<std::size_t>(replica)], 2 * replica);

  EXPECT_THAT(error_of(Code::data_loss,
                       [&] {
                         strategy_.run([](ReplicaContext& replica) {
                           replica.merge_call([] { throw Error(Code::data_loss, "in the merge"); });
                         });
                       }),
              HasSubstr("in the merge"));
}

TEST_P(ReplicasTest, FirstReplicaActsForAll) {
  std::atomic<int> calls{0};
  const auto words = strategy_.run([&](ReplicaContext& replica) {
    replica.on_first_replica([&] { ++calls; });
    EXPECT_EQ(calls, 1);  // all replicas have waited for it
    return replica.on_first_replica(
        [&] { return "from " + std::to_string(replica.replica_id_in_sync_group()); });
  });
  for (const auto& word : words) EXPECT_EQ(word, "from 0");
  EXPECT_EQ(error_of(Code::data_loss,
                     [&] {
                       strategy_.run([](ReplicaContext& replica) {
                         replica.on_first_replica([] { throw Error(Code::data_loss, "on the first"); });
                       });
                     }),
            "on the first");
}

TEST_P(ReplicasTest, ContextIsAvailableInTheRun) {
  EXPECT_FALSE(in_replica_context());
  EXPECT_THAT(error_of(Code::failed_precondition, [] { get_replica_context(); }),
              NamesAll({"get_replica_context"}));
  strategy_.run([](ReplicaContext& replica) { EXPECT_EQ(&get_replica_context(), &replica); });
  EXPECT_FALSE(in_replica_context());
}

TEST_P(ReplicasTest, SumsAreReproducible) {
  const auto once = [&] {
    return strategy_.run([](ReplicaContext& replica) {
      const double id = replica.replica_id_in_sync_group();
      return replica.all_reduce(ReduceOp::SUM, (id == 1 ? 1e16 : 1.0) / (id + 3));
    });
  };
  const auto first = once();
  double expected = 0;
  for (int id = 0; id < n_; ++id) expected += (id == 1 ? 1e16 : 1.0) / (id + 3);
  for (const double sum : first) EXPECT_EQ(sum, expected);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(once(), first);
}

TEST_P(ReplicasTest, ShareVariables) {
  const auto scope = strategy_.scope();
  const Variable<std::int64_t> table("table", Shape{64, 4}, {}, {optimizers::SGD{.learning_rate = -1}});
  const Variable<double> other("other", Shape{8}, {}, {optimizers::SGD{.learning_rate = -1}});
  const Counter counter("step");
  constexpr int kRounds = 100;
  strategy_.run([&](ReplicaContext& replica) {
    const std::int64_t id = replica.replica_id_in_sync_group();
    std::vector<double> row(1);
    for (std::int64_t round = 0; round < kRounds; ++round) {
      const Ids ids{round % 64, (round * 7 + id) % 64};
      const Rows<std::int64_t> rows = table.lookup(ids);
      for (const std::int64_t value : rows.values) EXPECT_GE(value, 0);
      table.push(ids, std::vector<std::int64_t>(8, id + 1));
      Pending reading = other.lookup_async(Ids{round % 8}, row);
      other.push(Ids{round % 8}, std::vector<double>{1});
      reading.wait();
      counter.fetch_add(1);
    }
    table.flush();
  });
  std::vector<std::int64_t> expected(64 * 4);
  for (std::int64_t id = 0; id < n_; ++id) {
    for (std::int64_t round = 0; round < kRounds; ++round) {
      for (const std::int64_t row : {round % 64, (round * 7 + id) % 64}) {
        for (std::int64_t i = 0; i < 4; ++i) expected[static_cast<std::size_t>(row * 4 + i)] += id + 1;
      }
    }
  }
  EXPECT_EQ(table.pull(), expected);
  double sum = 0;
  for (const double value : other.pull()) sum += value;
  EXPECT_EQ(sum, n_ * kRounds);
  EXPECT_EQ(counter.value(), n_ * kRounds);
}

/// Log sink that detects a text. Thread-safe.
class LogWatcher final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LogWatcher(std::string text) : text_(std::move(text)) {}
  bool found() const { return found_; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (std::string_view(message.payload.data(), message.payload.size()).find(text_) != std::string::npos)
      found_ = true;
  }
  void flush_() override {}

  std::string text_;
  std::atomic<bool> found_{false};
};

TEST(ReplicaWaits, WarningNamesTheMissingReplica) {
  const auto watcher = std::make_shared<LogWatcher>("still waiting for replica 2");
  spdlog::default_logger()->sinks().push_back(watcher);
  {
    RankThreads ranks({.ranks = 3, .flags = {{"ps", "1"}, {"replicas", "3"}, {"wait-timeout", "1s"}}});
    ParameterServerStrategy strategy(ranks.cluster());
    EXPECT_THAT(error_of(Code::deadline_exceeded,
                         [&] {
                           strategy.run([&](ReplicaContext& replica) {
                             if (replica.replica_id_in_sync_group() == 2)
                               poll_until([&] { return watcher->found(); });
                             static_cast<void>(replica.all_gather(std::vector<int>{1}, 0));
                           });
                         }),
                testing::MatchesRegex(
                    "replica . has waited 1000 ms in all_gather along axis 0 for replica(s 0,| 2|s 1,).*"));
    EXPECT_EQ(strategy.reduce(ReduceOp::SUM, strategy.run([] { return 1; })), 3);
  }
  spdlog::default_logger()->sinks().pop_back();
}

TEST(ReplicaLimits, RequireAStrategyAndAPositiveNumberOfReplicas) {
  EXPECT_EQ(error_of(Code::failed_precondition, [] { get_replicas(); }).empty(), false);
  Settings settings;
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { settings.set_from_flag("replicas", "0"); }),
              HasSubstr("replicas"));
}

}  // namespace
}  // namespace capstan
