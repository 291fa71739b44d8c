// client_test.cpp -- reads and writes on every path, compared with a plain array.
// Tests: src/client/channel/message_push_channel.cpp
// Tests: src/client/channel/ps_connection.cpp
// Tests: src/client/channel/ps_session.cpp
// Tests: src/client/channel/push_channel.hpp
// Tests: src/client/channel/read_channel.cpp
// Tests: src/client/channel/ring_push_channel.cpp
// Tests: src/client/checks.cpp
// Tests: src/client/ps_connections.cpp
// Tests: src/client/routes.cpp
#include "client/client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "client/client_fixture.hpp"
#include "support/poll.hpp"

namespace capstan::client {
namespace {

using Ids = std::vector<std::int64_t>;

/// Small rings, which wrap around often.
RankThreadsOptions two_ps() { return {.ranks = 4, .flags = {{"ps", "2"}, {"push-ring-bytes", "64KiB"}}}; }

class ClientTest : public ClientFixture {};

TEST_P(ClientTest, PushesOfRandomRowsAddUp) {
  start(two_ps());
  constexpr std::uint64_t kRows = 101;
  constexpr std::uint64_t kWidth = 5;
  const auto v = create("w", DType::float32, {kRows, kWidth});
  ASSERT_EQ(v.shards.size(), 3U);
  std::vector<float> plain(kRows * kWidth);
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    if (round % 7 == 6) {
      std::vector<float> gradient(plain.size());
      for (std::size_t i = 0; i < plain.size(); ++i)
        plain[i] += gradient[i] = static_cast<float>(random() % 9);
      client().push_dense(v, gradient.data());
    } else {
      Ids ids(random() % 150);  // some are duplicates
      for (auto& id : ids) id = static_cast<std::int64_t>(random() % kRows);
      std::vector<float> gradient(ids.size() * kWidth);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = static_cast<float>(random() % 9);
        plain[static_cast<std::uint64_t>(ids[i / kWidth]) * kWidth + i % kWidth] += gradient[i];
      }
      push(v, ids, gradient);
      std::fill(gradient.begin(), gradient.end(), -1e9F);  // the caller may reuse it on return
    }
    client().flush();
    const auto row = static_cast<std::int64_t>(random() % kRows);
    const auto first = plain.begin() + row * static_cast<std::int64_t>(kWidth);
    ASSERT_EQ(lookup<float>(v, {row}), std::vector<float>(first, first + kWidth)) << "round " << round;
  }
  EXPECT_EQ(pull<float>(v), plain);
  const Ids some{100, 0, 33, 34, 67, 68, 33};
  std::vector<float> expected;
  for (const std::int64_t id : some) {
    for (std::uint64_t j = 0; j < kWidth; ++j)
      expected.push_back(plain[static_cast<std::uint64_t>(id) * kWidth + j]);
  }
  EXPECT_EQ(lookup<float>(v, some), expected);
}

/// Entries of at least StoreChoice::kLargeBytes, so many that some are written by non-temporal stores.
TEST_P(ClientTest, ManyLargePushesAddUp) {
  start({.ranks = 3});
  constexpr std::uint64_t kRows = 4000;
  for (const std::uint64_t width : {16, 50}) {
    const auto v =
        create("w" + std::to_string(width), DType::float32, {kRows, static_cast<std::int64_t>(width)});
    std::vector<float> plain(kRows * width);
    std::vector<float> gradient(plain.size());
    std::mt19937 random(5);
    Ids ids(kRows);
    std::iota(ids.begin(), ids.end(), 0);
    for (int round = 0; round < 120; ++round) {
      for (float& g : gradient) g = static_cast<float>(random() % 9);
      if (round % 4 == 3) {
        client().push_dense(v, gradient.data());
        for (std::size_t i = 0; i < plain.size(); ++i) plain[i] += gradient[i];
      } else {
        std::shuffle(ids.begin(), ids.end(), random);
        push(v, ids, gradient);
        for (std::size_t i = 0; i < plain.size(); ++i)
          plain[static_cast<std::uint64_t>(ids[i / width]) * width + i % width] += gradient[i];
      }
    }
    client().flush();
    EXPECT_EQ(pull<float>(v), plain) << width << " floats per row";
  }
}

TEST_P(ClientTest, SumsTheGradientsOfDuplicateRows) {
  start(two_ps());
  const auto v = create("w", DType::float64, {10},
                        optimizers::Adagrad{.learning_rate = 1, .initial_accumulator = 0, .epsilon = 0});
  push<double>(v, {7, 2, 7, 0}, {3, 5, 1, 2});
  client().flush();
  // One step of Adagrad from 0 is the sign of the gradient, and the accumulator of row 7 is (3 + 1)^2.
  EXPECT_EQ(pull<double>(v), (std::vector<double>{-1, 0, -1, 0, 0, 0, 0, -1, 0, 0}));
  push<double>(v, {7}, {3});
  client().flush();
  EXPECT_DOUBLE_EQ(lookup<double>(v, {7})[0], -1 - 3.0 / 5);
}

TEST_P(ClientTest, DividesPushesThatExceedTheRing) {
  start(two_ps());
  constexpr std::int64_t kRows = 30001;
  const auto v = create("w", DType::float32, {kRows, 4});
  std::vector<float> gradient(kRows * 4);
  std::iota(gradient.begin(), gradient.end(), 0.F);
  ASSERT_GT(gradient.size() * 4, 3 * std::size_t{64 << 10});
  client().push_dense(v, gradient.data());
  client().flush();
  EXPECT_EQ(pull<float>(v), gradient);
  Ids all(kRows);
  std::iota(all.begin(), all.end(), 0);
  std::reverse(all.begin(), all.end());
  std::vector<float> ones(kRows * 4, 1);
  client().push(v, all, ones.data());
  client().flush();
  for (float& g : gradient) g += 1;
  EXPECT_EQ(pull<float>(v), gradient);
}

// Rows of every alignment, more than a core's cache holds. Successive rows of the push belong to different
// shards.
TEST_P(ClientTest, LargePushOfUnalignedRowsInAnyOrderAddsUp) {
  start(two_ps());
  constexpr std::int64_t kRows = 30000;
  constexpr std::int64_t kWidth = 7;
  const auto v = create("v", DType::float32, {kRows, kWidth});
  std::vector<std::int64_t> ids(kRows);
  for (std::int64_t i = 0; i < kRows; ++i) ids[static_cast<std::size_t>(i)] = i * 7919 % kRows;
  std::vector<float> gradient(kRows * kWidth);
  std::vector<float> wanted(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>(i % 1000);
    wanted[static_cast<std::size_t>(ids[i / kWidth]) * kWidth + i % kWidth] = gradient[i];
  }
  push(v, ids, gradient);
  client().flush();
  EXPECT_EQ(pull<float>(v), wanted);
}

TEST_P(ClientTest, DividedPushIsOneStepOfAdam) {
  start(two_ps(), 1);
  constexpr std::int64_t kRows = 20000;
  const auto whole = create("whole", DType::float64, {kRows}, optimizers::Adam{.learning_rate = 0.1});
  std::vector<double> gradient(kRows);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = 1 + static_cast<double>(i % 5);
  for (int step = 0; step < 3; ++step) client().push_dense(whole, gradient.data());
  client().flush();
  const auto values = pull<double>(whole);
  double m = 0;
  double v = 0;
  double w = 0;
  for (int t = 1; t <= 3; ++t) {
    m = 0.9 * m + 0.1 * 5;
    v = 0.999 * v + 0.001 * 25;
    w -= 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m / (std::sqrt(v) + 1e-7);
  }
  for (std::size_t i = 4; i < values.size(); i += 5) ASSERT_NEAR(values[i], w, 1e-12) << i;
}

TEST_P(ClientTest, RingsWrapWithPushesOfOddSizes) {
  start(two_ps());
  const auto v = create("count", DType::int64, {500});
  std::vector<std::int64_t> plain(500);
  std::mt19937 random(9);
  for (int round = 0; round < 400; ++round) {
    Ids ids(1 + random() % 700);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % 500);
    std::vector<std::int64_t> gradient(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      plain[static_cast<std::size_t>(ids[i])] += gradient[i] = static_cast<std::int64_t>(random() % 100);
    }
    push(v, ids, gradient);
  }
  client().flush();
  EXPECT_EQ(pull<std::int64_t>(v), plain);
}

TEST_P(ClientTest, RangesOfRowsAreReadAcrossShards) {
  start(two_ps());
  const auto v = create("w", DType::float32, {11});  // shards of 4, 4 and 3 rows
  std::vector<float> values(11);
  std::iota(values.begin(), values.end(), 1.F);
  client().update(v, protocol::RowOp::set, 0, 11, values.data());
  for (std::uint64_t first = 0; first <= 11; ++first) {
    for (std::uint64_t rows = 0; rows <= 11 - first; ++rows) {
      std::vector<float> out(rows, -1);
      client().pull(v, first, rows, out.data());
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
      EXPECT_EQ(out, std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(rows)));
    }
  }
}

TEST_P(ClientTest, AssignSetsRowsAcrossShards) {
  start(two_ps());
  const auto v = create("w", DType::float64, {10, 2}, {}, initializers::constant(5));
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  client().update(v, protocol::RowOp::set, 3, 5, values.data());
  std::vector<double> expected(20, 5);
  std::copy(values.begin(), values.end(), expected.begin() + 6);
  EXPECT_EQ(pull<double>(v), expected);
  client().update(v, protocol::RowOp::set, 10, 0, nullptr);
  EXPECT_EQ(pull<double>(v), expected);
}

TEST_P(ClientTest, AssignmentsAreOrderedAfterEarlierPushes) {
  start(two_ps());
  const auto v = create("w", DType::float32, {300});
  const std::vector<float> ones(300, 1);
  const std::vector<float> values(300, 100);
  for (int round = 0; round < 30; ++round) {
    client().push_dense(v, ones.data());
    client().push_dense(v, ones.data());
    client().update(v, protocol::RowOp::set, 0, 300, values.data());
    client().push_dense(v, ones.data());
    client().flush();
    ASSERT_EQ(pull<float>(v), std::vector<float>(300, 101)) << "round " << round;
  }
}

TEST_P(ClientTest, AcceptsEmptyIds) {
  start(two_ps());
  const auto v = create("w", DType::float32, {4}, {}, initializers::constant(2));
  push<float>(v, {}, {});
  client().flush();
  EXPECT_TRUE(lookup<float>(v, {}).empty());
  client().pull(v, 4, 0, nullptr);
  EXPECT_EQ(pull<float>(v), std::vector<float>(4, 2));
}

TEST_P(ClientTest, RejectsMoreThan2To32Ids) {
  start(two_ps());
  const auto v = create("entities", DType::float32, {100, 2});
  std::vector<float> rows(6);
  const Ids ids{1, 2, 3};
  const std::span<const std::int64_t> too_many(ids.data(),
                                               std::size_t{1} << 32);  // the elements are not accessed
  const char* text =
      "variable \"entities\": found 4294967296 ids in one call, expected at most 4294967295; split the call";
  expect_error(Code::invalid_argument, text, [&] { client().lookup(v, too_many, rows.data()); });
  expect_error(Code::invalid_argument, text, [&] { client().push(v, too_many, rows.data()); });
}

TEST_P(ClientTest, RejectsUnknownIdsBeforeSendingAnything) {
  start(two_ps());
  const auto v = create("entities", DType::float32, {100, 2});
  std::vector<float> rows(6);
  expect_error(Code::out_of_range,
               "id 100 at position 2 is not in variable \"entities\", which has rows 0 to 99", [&] {
                 client().lookup(v, Ids{1, 99, 100}, rows.data());
               });
  expect_error(Code::out_of_range,
               "id -1 at position 0 is not in variable \"entities\", which has rows 0 to 99", [&] {
                 client().lookup(v, Ids{-1, 2, 200}, rows.data());
               });
  rows.assign(6, 1);
  expect_error(Code::out_of_range,
               "id 5000000000 at position 1 is not in variable \"entities\", which has rows 0 to 99", [&] {
                 client().push(v, Ids{1, 5000000000, 2}, rows.data());
               });
  expect_error(Code::out_of_range, "rows 99 to 101 are not all in variable \"entities\", which has 100 rows",
               [&] { client().pull(v, 99, 2, rows.data()); });
  expect_error(Code::out_of_range, "rows 99 to 101 are not all in variable \"entities\", which has 100 rows",
               [&] { client().update(v, protocol::RowOp::set, 99, 2, rows.data()); });
  client().flush();
  EXPECT_EQ(pull<float>(v), std::vector<float>(200, 0));
}

TEST_P(ClientTest, SecondRunMayOrderReplicasDifferently) {
  start({.flags = {{"ps", "2"}}});
  const auto v = create("v", DType::float32, {9, 1});
  const auto push_as = [&](int replica, const std::vector<float>& values) {
    client().push_as(replica);
    for (const float value : values) push<float>(v, {0, 4, 8}, {value, value, value});
  };
  client().begin({.id = 5});
  push_as(1, {1, 2});
  push_as(0, {100});
  push_as(1, {4});
  client().begin({.id = 5, .again = true});
  push_as(0, {100, 200});
  push_as(1, {1, 2, 4, 8});
  client().push_as(0);
  client().begin({});
  client().flush();
  EXPECT_EQ(lookup<float>(v, {0, 4, 8}), std::vector<float>(3, 315));
}

TEST_P(ClientTest, SetsTheLearningRateInOrderWithPushes) {
  start(two_ps());
  const auto v = create("v", DType::float32, {9, 1});
  push<float>(v, {0, 4, 8}, {1, 1, 1});
  client().set_learning_rate(v, -10);
  push<float>(v, {0, 4, 8}, {1, 1, 1});
  client().flush();
  EXPECT_EQ(lookup<float>(v, {0, 4, 8}), std::vector<float>(3, 11));
}

TEST_P(ClientTest, SkippedPushDoesNotRenumberOthers) {
  start({.flags = {{"ps", "2"}}});
  const auto v = create("v", DType::float32, {9, 1});
  const auto push_one = [&](float value) { push<float>(v, {0, 4, 8}, {value, value, value}); };
  client().begin({.id = 5});
  client().skip_push();
  push_one(10);
  push<float>(v, {}, {});
  push_one(100);
  client().begin({.id = 5, .again = true});
  push_one(1);  // the first run skipped it, so it is dropped
  client().skip_push();
  push<float>(v, {}, {});
  push_one(100);
  push_one(1000);
  client().begin({});
  client().flush();
  EXPECT_EQ(lookup<float>(v, {0, 4, 8}), std::vector<float>(3, 1110));
}

TEST_P(ClientTest, RejectsRowsThatDoNotFitTheRing) {
  start(two_ps(), 1);
  const auto v = create("wide", DType::float64, {2, 9000});
  const std::vector<double> gradient(18000, 1);
  expect_error(
      Code::resource_exhausted,
      "push: a row of 72000 bytes does not fit a push ring of 65536 bytes; set --push-ring-bytes to at "
      "least four rows",
      [&] { client().push_dense(v, gradient.data()); });
  EXPECT_EQ(pull<double>(v), std::vector<double>(18000, 0));
}

TEST_P(ClientTest, RowsOfHalfARingShareItWithSmallEntries) {
  start(two_ps());
  constexpr std::uint64_t kWidth = 8160;  // an entry of 32,704 bytes
  const auto wide = create("wide", DType::float32, {3, kWidth});
  const auto narrow = create("narrow", DType::float32, {5});
  const std::vector<float> ones(3 * kWidth, 1);
  for (int push = 0; push < 20; ++push) {
    client().push_dense(wide, ones.data());
    client().push_dense(narrow, ones.data());
  }
  client().flush();
  EXPECT_EQ(pull<float>(wide), std::vector<float>(3 * kWidth, 20));
  EXPECT_EQ(pull<float>(narrow), std::vector<float>(5, 20));
}

TEST_P(ClientTest, CombinedPushesAddUp) {
  start(two_ps());
  constexpr std::int64_t kRows = 1000;
  const auto v = create("v", DType::float64, {kRows, 2}, optimizers::SGD{.learning_rate = -1}, {},
                        CombinePushes{.rows = 64, .pushes = 4});
  std::mt19937 random(1);
  std::vector<double> wanted(kRows * 2);
  client().begin({.id = 5});
  for (int push_number = 0; push_number < 50; ++push_number) {
    Ids ids(random() % 300);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % (1 + random() % kRows));
    std::vector<double> gradient(ids.size() * 2);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = static_cast<double>(random() % 10);
      wanted[static_cast<std::size_t>(ids[i / 2]) * 2 + i % 2] += gradient[i];
    }
    push(v, ids, gradient);
  }
  client().flush();
  EXPECT_EQ(pull<double>(v), wanted);
  client().begin({});
}

// The first gradient g of a row is sent alone: Adagrad with a rate of -1 adds g / sqrt(g^2). Then it adds the
// sum 2g of the two others: 2g / sqrt(g^2 + 4g^2). Equal ids of a push count as one gradient.
TEST_P(ClientTest, OptimizerAppliesASumOnce) {
  start(two_ps());
  const auto v = create("v", DType::float64, {9},
                        optimizers::Adagrad{.learning_rate = -1, .initial_accumulator = 0, .epsilon = 0}, {},
                        CombinePushes{.pushes = 3});
  client().begin({.id = 5});
  for (int i = 0; i < 3; ++i) push<double>(v, {0, 4, 8, 4}, {1, 2, 3, 4});
  client().flush();
  for (const double value : lookup<double>(v, {0, 4, 8})) EXPECT_DOUBLE_EQ(value, 1 + 2 / std::sqrt(5));
  client().begin({});
}

TEST_P(ClientTest, AssignmentsFollowTheSumsOfEarlierPushes) {
  start(two_ps());
  const auto v = create("v", DType::float64, {4}, optimizers::SGD{.learning_rate = -1}, {}, CombinePushes{});
  const std::vector<double> tens(4, 10);
  client().begin({.id = 5});
  for (int i = 0; i < 3; ++i) push<double>(v, {0, 1, 2, 3}, {1, 2, 3, 4});
  client().update(v, protocol::RowOp::set, 0, 2, tens.data());
  client().flush();
  EXPECT_EQ(pull<double>(v), (std::vector<double>{10, 10, 9, 12}));
  push<double>(v, {0}, {1});
  client().scatter(v, protocol::RowOp::mul, Ids{0}, tens.data());
  EXPECT_EQ(pull<double>(v)[0], 110);
  push<double>(v, {1}, {1});
  client().wait(client().pushed(v));
  EXPECT_EQ(pull<double>(v)[1], 11);
  push<double>(v, {2}, {1});
  client().combine_pushes(false);
  push<double>(v, {2}, {1});
  client().flush();
  EXPECT_EQ(pull<double>(v)[2], 11);
  client().begin({});
}

// The first run ends after any of its pushes; the second one has other gradients, of which a part counts.
TEST_P(ClientTest, CombinedPushesOfASecondRunCountOnce) {
  start({.flags = {{"ps", "2"}}});
  constexpr int kPushes = 9;
  constexpr int kOfSecondRun = 1000;
  for (int sent = 0; sent <= kPushes; ++sent) {
    const auto v = create("v" + std::to_string(sent), DType::float64, {9},
                          optimizers::SGD{.learning_rate = -1}, {}, CombinePushes{.rows = 2, .pushes = 3});
    const auto run = [&](bool again, int pushes) {
      client().begin({.id = static_cast<std::uint64_t>(10 + sent), .again = again});
      const double value = again ? kOfSecondRun + 1 : 1;
      for (std::int64_t i = 0; i < pushes; ++i) {
        push<double>(v, {0, i % 4, 8}, {value, value, value});
        if (i == 4) client().flush();
      }
    };
    run(false, sent);
    run(true, kPushes);
    client().flush();
    client().begin({});
    client().flush();
    const std::vector<double> values = pull<double>(v);
    const auto all = static_cast<int>(std::accumulate(values.begin(), values.end(), 0.0));
    EXPECT_EQ(all % kOfSecondRun, 3 * kPushes) << sent;
    EXPECT_LE(all / kOfSecondRun, 3 * kPushes) << sent;
    EXPECT_EQ(static_cast<int>(values[0]) % kOfSecondRun, kPushes + 3) << sent;
  }
}

TEST_P(ClientTest, CombinesOnlyWhatEveryRunPushesAlike) {
  start(two_ps());
  EXPECT_TRUE(client().combine_pushes(true));
  strategy_->context().share(true);  // replicas in threads
  EXPECT_FALSE(client().combine_pushes(false));
  TearDown();
  start({.ranks = 4, .flags = {{"ps", "2"}, {"nan-gradients", "skip"}}});
  EXPECT_FALSE(client().combine_pushes(false));
}

TEST_P(ClientTest, CombinesPushesOfSeveralVariablesInOneCall) {
  start(two_ps());
  const CombinePushes combine{.rows = 8, .pushes = 2};
  const auto a = create("a", DType::float64, {9}, optimizers::SGD{.learning_rate = -1}, {}, combine);
  const auto b = create("b", DType::float32, {9}, optimizers::SGD{.learning_rate = -1}, {}, combine);
  const Ids ids{0, 4, 8};
  const std::vector<double> of_a{1, 2, 3};
  const std::vector<float> of_b{10, 20, 30};
  client().begin({.id = 5});
  for (int i = 0; i < 5; ++i)
    client().push(std::vector<Client::Push>{{&a, ids, of_a.data()}, {&b, ids, of_b.data()}});
  client().flush();
  EXPECT_EQ(lookup<double>(a, ids), (std::vector<double>{5, 10, 15}));
  EXPECT_EQ(lookup<float>(b, ids), (std::vector<float>{50, 100, 150}));
  client().begin({});
}

// Workers with their own clients.
TEST_P(ClientTest, ConcurrentClientsPushToTheSameRows) {
  protocol::VariableDescriptor v;
  strategy::CounterRegistry::Slot counter;
  std::atomic<bool> ready{false};
  std::atomic<int> finished{0};
  RankThreadsOptions options{.ranks = 6, .flags = {{"ps", "2"}, {"push-ring-bytes", "64KiB"}}};
  options.worker = [&](const std::shared_ptr<cluster::Runtime>& runtime) {
    while (!ready) std::this_thread::yield();
    Client mine(runtime);
    std::vector<std::int64_t> seen;
    for (int round = 0; round < 40; ++round) {
      const Ids ids{0, 3, 50, 99, runtime->self().index};
      const std::vector<std::int64_t> gradient{1, 2, 3, 4, 1000};
      mine.push(v, ids, gradient.data());
      mine.fetch_add(counter.ps, counter.index, 1);
      std::vector<std::int64_t> out(1);
      mine.flush();
      mine.lookup(v, Ids{50}, out.data());
      seen.push_back(out[0]);
    }
    // Each client saw its own pushes, and the values never decreased.
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_GE(seen.front(), 3);
    ++finished;
    return 0;
  };
  start(options);
  v = create("shared", DType::int64, {100});
  counter = strategy_->counters().create("steps");
  ready = true;
  ASSERT_TRUE(poll_until([&] { return finished == 3; }));
  const auto values = pull<std::int64_t>(v);
  EXPECT_EQ(values[3], 3 * 40 * 2);
  EXPECT_EQ(values[50], 3 * 40 * 3);
  EXPECT_EQ(values[99], 3 * 40 * 4);
  EXPECT_EQ(values[0], 3 * 40 + 40 * 1000);
  EXPECT_EQ(values[1], 40 * 1000);
  EXPECT_EQ(client().fetch_add(counter.ps, counter.index, 5), 120U);
  EXPECT_EQ(client().fetch_add(counter.ps, counter.index, 0), 125U);
}

INSTANTIATE_TEST_SUITE_P(Paths, ClientTest,
                         testing::Values(PathParam{Network::loop, "auto"}, PathParam{Network::loop, "rma"},
                                         PathParam{Network::loop, "am"}),
                         path_name);

/// Clients and ps connected by UCX.
class UcxClientTest : public ClientFixture {};

TEST_P(UcxClientTest, ReadsAndPushesOfEveryKindAddUp) {
  start(two_ps());
  const auto v =
      create("w", DType::float32, {1001, 7}, optimizers::SGD{.learning_rate = -1}, initializers::constant(1));
  const auto counter = strategy_->counters().create("steps");
  std::vector<float> plain(1001 * 7, 1);
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    Ids ids(random() % 900);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % 1001);
    std::vector<float> gradient(ids.size() * 7);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = static_cast<float>(random() % 9);
      plain[static_cast<std::size_t>(ids[i / 7]) * 7 + i % 7] += gradient[i];
    }
    push(v, ids, gradient);
    if (round % 5 == 0) {
      client().push_dense(v, plain.data());
      for (float& p : plain) p += p;
    }
    client().flush();
    ASSERT_EQ(pull<float>(v), plain) << "round " << round;
    EXPECT_EQ(client().fetch_add(counter.ps, counter.index, 2), static_cast<std::uint64_t>(2 * round));
  }
  const std::vector<float> values(7, 77);
  client().update(v, protocol::RowOp::set, 500, 1, values.data());
  EXPECT_EQ(lookup<float>(v, {500}), values);
}

INSTANTIATE_TEST_SUITE_P(Paths, UcxClientTest,
                         testing::Values(PathParam{Network::ucx, "auto"}, PathParam{Network::ucx, "rma"},
                                         PathParam{Network::ucx, "am"}),
                         path_name);

}  // namespace
}  // namespace capstan::client
