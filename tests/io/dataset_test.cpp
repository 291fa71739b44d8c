// dataset_test.cpp -- elements of each operator, computed by hand; errors; termination of threads.
#include "capstan/dataset.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <thread>

#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "support/poll.hpp"
#include "support/read_all.hpp"

namespace capstan {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Not;

Numbers counted(std::int64_t stop) {
  Numbers numbers(static_cast<std::size_t>(stop));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}
Numbers sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST(Dataset, RangesCountUpAndDown) {
  EXPECT_THAT(all(Data::range(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(all(Data::range(2, 9, 3)), ElementsAre(2, 5, 8));
  EXPECT_THAT(all(Data::range(5, -3, -4)), ElementsAre(5, 1));
  EXPECT_THAT(all(Data::range(0)), IsEmpty());
  EXPECT_THAT(all(Data::range(3, 1)), IsEmpty());
  EXPECT_THAT(all(Dataset<std::uint8_t>::range(254, 255)), ElementsAre(254));
  const auto low = std::numeric_limits<std::int64_t>::min(), high = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(all(Data::range(low, high, high)), ElementsAre(low, -1, high - 1));
  EXPECT_THAT(error_of(Code::invalid_argument, [] { Data::range(0, 1, 0); }), NamesAll({"range", "0"}));
}

TEST(Dataset, GeneratorsRestartForEveryIteration) {
  const auto three = Data::from_generator([] {
    return [at = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
      if (at == 3) return std::nullopt;
      return at++;
    };
  });
  EXPECT_THAT(all(three), ElementsAre(0, 1, 2));
  EXPECT_THAT(all(three.repeat(2)), ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Dataset, MapAndFilterApplyToEachElement) {
  EXPECT_THAT(all(Data::range(4).map([](std::int64_t x) { return x + 0.5; })),
              ElementsAre(0.5, 1.5, 2.5, 3.5));
  EXPECT_THAT(all(Data::range(9).filter([](const std::int64_t& x) { return x % 4 == 0; })),
              ElementsAre(0, 4, 8));
}

TEST(Dataset, TakeSkipAndShardCountElements) {
  EXPECT_THAT(all(Data::range(5).take(2)), ElementsAre(0, 1));
  EXPECT_THAT(all(Data::range(2).take(5)), ElementsAre(0, 1));
  EXPECT_THAT(all(Data::range(3).take(-1)), ElementsAre(0, 1, 2));
  EXPECT_THAT(all(Data::range(5).skip(3)), ElementsAre(3, 4));
  EXPECT_THAT(all(Data::range(2).skip(5)), IsEmpty());
  EXPECT_THAT(all(Data::range(3).skip(-1)), IsEmpty());
  EXPECT_THAT(all(Data::range(7).shard(3, 1)), ElementsAre(1, 4));
  EXPECT_THAT(all(Data::range(2).shard(5, 4)), IsEmpty());
  EXPECT_THAT(error_of(Code::invalid_argument, [] { Data::range(4).shard(2, 2); }),
              NamesAll({"shard", "2", "0 to 1"}));
  expect_error_naming(Code::invalid_argument, {"shard", "0"}, [] { Data::range(4).shard(0, 0); });
}

TEST(Dataset, BatchesHoldElementsInOrder) {
  EXPECT_THAT(all(Data::range(5).batch(2)), ElementsAre(Numbers{0, 1}, Numbers{2, 3}, Numbers{4}));
  EXPECT_THAT(all(Data::range(5).batch(2, true)), ElementsAre(Numbers{0, 1}, Numbers{2, 3}));
  EXPECT_THAT(
      all(Data::range(3).batch_as(2, [](Numbers n) { return std::accumulate(n.begin(), n.end(), 0); })),
      ElementsAre(1, 2));
  expect_error_naming(Code::invalid_argument, {"batch", "0"}, [] { Data::range(4).batch(0); });
}

TEST(Dataset, RepeatIteratesTheInputAgain) {
  EXPECT_THAT(all(Data::range(2).repeat(3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(all(Data::range(2).repeat(0)), IsEmpty());
  EXPECT_THAT(all(Data::range(2).repeat().take(5)), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(all(Data::range(0).repeat()), IsEmpty());
}

TEST(Dataset, ConcatenateAndZipCombineStreams) {
  EXPECT_THAT(all(Data::range(2).concatenate(Data::range(5, 7))), ElementsAre(0, 1, 5, 6));
  const auto pairs = zip(Data::range(3), Dataset<std::string>::from_vector({"a", "b"}));
  EXPECT_THAT(all(pairs), ElementsAre(std::pair(0, "a"), std::pair(1, "b")));
  const auto triples = zip(Data::range(2), Data::range(4, 6), Data::range(7, 9));
  EXPECT_THAT(all(triples), ElementsAre(std::tuple(0, 4, 7), std::tuple(1, 5, 8)));
}

// The example in TensorFlow's documentation: cycle 2, block 4, each element repeated six times.
TEST(Dataset, InterleaveTakesBlocksInTurn) {
  const auto six = [](std::int64_t x) { return Data::from_vector(Numbers(6, x)); };
  EXPECT_THAT(
      all(Data::range(1, 6).interleave(six, 2, 4)),
      ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5));
  EXPECT_THAT(all(Data::range(3).flat_map([](std::int64_t x) { return Data::range(x); })),
              ElementsAre(0, 0, 1));
  expect_error_naming(Code::invalid_argument, {"interleave", "0"},
                      [&] { Data::range(1).interleave(six, 0); });
}

TEST(Dataset, ShuffleOrderDependsOnTheSeed) {
  const auto order = [](std::uint64_t seed) { return all(Data::range(100).shuffle(100, {.seed = seed})); };
  EXPECT_EQ(sorted(order(1)), counted(100));
  EXPECT_THAT(order(1), Not(ElementsAreArray(counted(100))));
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  EXPECT_NE(all(Data::range(100).shuffle(100)), all(Data::range(100).shuffle(100)));
  EXPECT_EQ(all(Data::range(9).shuffle(1, {.seed = 1})), counted(9));
}

TEST(Dataset, ShuffleReadsNoFurtherThanItsBuffer) {
  const Numbers order = all(Data::range(1000).shuffle(10, {.seed = 4}));
  ASSERT_EQ(sorted(order), counted(1000));
  for (std::size_t at = 0; at < order.size(); ++at) EXPECT_LT(order[at], static_cast<std::int64_t>(at) + 10);
}

// 24,000 draws of the 24 orders of four elements: 1,000 of each, within five standard deviations.
TEST(Dataset, ShuffleIsUniform) {
  std::map<Numbers, int> counts;
  const auto shuffled = Data::range(4).shuffle(4, {.seed = 7}).repeat(24000).batch(4);
  for (const auto& order : shuffled) ++counts[order];
  ASSERT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 5 * 31);
}

TEST(Dataset, ReshufflingChangesTheOrderOfEachIteration) {
  const auto epochs = [](bool reshuffle) {
    return all(
        Data::range(50).shuffle(50, {.seed = 1, .reshuffle_each_iteration = reshuffle}).repeat(2).batch(50));
  };
  EXPECT_NE(epochs(true)[0], epochs(true)[1]);
  EXPECT_EQ(epochs(false)[0], epochs(false)[1]);
  const auto again = Data::range(50).shuffle(50, {.seed = 1});
  EXPECT_NE(all(again), all(again));
  const auto fixed = Data::range(50).shuffle(50, {.seed = 1, .reshuffle_each_iteration = false});
  EXPECT_EQ(all(fixed), all(fixed));
  const auto unseeded = Data::range(50).shuffle(50, {.reshuffle_each_iteration = false});
  EXPECT_EQ(all(unseeded), all(unseeded));
}

TEST(Dataset, CacheReadsItsInputOnce) {
  auto calls = std::make_shared<int>(0);
  const auto cached = Data::range(3)
                          .map([calls](std::int64_t x) {
                            ++*calls;
                            return x;
                          })
                          .cache();
  EXPECT_THAT(all(cached.repeat(3)), ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2));
  EXPECT_EQ(*calls, 3);
  EXPECT_THAT(all(cached), ElementsAre(0, 1, 2));
  EXPECT_EQ(*calls, 3);
}

TEST(Dataset, RebatchSplitsAcrossBatches) {
  EXPECT_THAT(all(Data::range(8).batch(4).rebatch({2, 1, 1})),
              ElementsAre(Numbers{0, 1}, Numbers{2}, Numbers{3}, Numbers{4, 5}, Numbers{6}, Numbers{7}));
  EXPECT_THAT(all(Data::range(7).batch(3).rebatch({5})), ElementsAre(Numbers{0, 1, 2, 3, 4}, Numbers{5, 6}));
  EXPECT_THAT(all(Data::range(7).batch(3).rebatch({5}, true)), ElementsAre(Numbers{0, 1, 2, 3, 4}));
  EXPECT_THAT(all(Data::range(2).batch(2).rebatch({0, 1})),
              ElementsAre(Numbers{}, Numbers{0}, Numbers{}, Numbers{1}, Numbers{}));
  EXPECT_THAT(all(Data::range(2).batch(2).rebatch({1, 0})),
              ElementsAre(Numbers{0}, Numbers{}, Numbers{1}, Numbers{}));
  EXPECT_THAT(all(Data::range(8).batch(4).legacy_rebatch(3)),
              ElementsAre(Numbers{0, 1}, Numbers{2, 3}, Numbers{}, Numbers{4, 5}, Numbers{6, 7}, Numbers{}));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] {
                         Data::range(2).batch(2).rebatch({0, 0});
                       }),
              NamesAll({"rebatch", "0"}));
}

TEST(Dataset, RebatchSplitsBatchesOfArraysAndPairs) {
  const Array<float> array({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto rows = Dataset<Array<float>>::from_vector({array, array}).rebatch({4});
  EXPECT_THAT(all(rows), ElementsAre(Array<float>({4, 2}, {1, 2, 3, 4, 5, 6, 1, 2}),
                                     Array<float>({2, 2}, {3, 4, 5, 6})));
  const auto pairs = zip(Data::range(4).batch(2), Data::range(4, 8).batch(2)).rebatch({3});
  EXPECT_THAT(all(pairs),
              ElementsAre(std::pair(Numbers{0, 1, 2}, Numbers{4, 5, 6}), std::pair(Numbers{3}, Numbers{7})));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] { all(zip(Data::range(6).batch(2), Data::range(6).batch(3)).rebatch({1})); }),
              NamesAll({"2", "3"}));
}

TEST(Dataset, BatchInfoPropagatesThroughOperators) {
  const auto batches = Data::range(8).batch(4, true);
  const auto info = batches.shuffle(2).repeat(2).take(3).skip(1).shard(2, 0).cache().prefetch(1).batches();
  EXPECT_EQ(info.size, 4);
  EXPECT_TRUE(info.always_full);
  EXPECT_EQ(batches.map([](Numbers n) { return n; }).batches().size, -1);
  EXPECT_EQ(batches.concatenate(Data::range(8).batch(3)).batches().size, -1);
  EXPECT_FALSE(batches.concatenate(Data::range(8).batch(4)).batches().always_full);
  EXPECT_EQ(zip(batches, batches).batches().size, 4);
  EXPECT_EQ(Data::range(3).batches().size, -1);
}

TEST(Dataset, ParallelMapKeepsTheOrder) {
  const auto slow_at_first = [](std::int64_t x) {
    // Elements finish in another order than they start.
    std::this_thread::sleep_for(std::chrono::microseconds(x % 7 == 0 ? 500 : 5));
    return 3 * x;
  };
  for (const int threads : {1, 2, 5}) {
    const Numbers tripled = all(Data::range(200).map(slow_at_first, {.threads = threads}));
    ASSERT_EQ(tripled.size(), 200u);
    for (std::size_t i = 0; i < tripled.size(); ++i) EXPECT_EQ(tripled[i], 3 * static_cast<std::int64_t>(i));
  }
}

TEST(Dataset, PrefetchReadsAheadAndNoFurther) {
  auto made = std::make_shared<std::atomic<int>>(0);
  auto ahead = Data::range(100)
                   .map([made](std::int64_t x) {
                     ++*made;
                     return x;
                   })
                   .prefetch(5)
                   .make_iterator();
  EXPECT_EQ(ahead.next(), 0);
  ASSERT_TRUE(poll_until([&] { return *made >= 6; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time to read further, if it did
  EXPECT_EQ(*made, 6);                                         // one returned, five prefetched
  EXPECT_EQ(ahead.next(), 1);
}

TEST(Dataset, ThreadsEndWithTheirIterator) {
  static std::atomic<int> began;
  static std::atomic<int> alive;
  struct InThread {
    InThread() { ++began, ++alive; }
    ~InThread() { --alive; }
  };
  const auto count_threads = [](std::int64_t x) {
    thread_local InThread in_thread;
    static_cast<void>(in_thread);
    return x;
  };
  for (int i = 0; i < 20; ++i) {
    auto endless = Data::range(3)
                       .repeat()
                       .map(count_threads, {.threads = 2})
                       .prefetch(4)
                       .map(count_threads)
                       .prefetch(4)
                       .make_iterator();
    for (int j = 0; j < i; ++j) endless.next();
  }
  EXPECT_GT(began, 0);
  EXPECT_EQ(alive, 0);
}

std::int64_t not_five(std::int64_t x) {
  if (x == 5) throw Error(Code::data_loss, "five");
  return x;
}

TEST(Dataset, AnErrorReplacesItsElement) {
  for (const auto& dataset : {Data::range(8).map(not_five), Data::range(8).map(not_five).prefetch(3),
                              Data::range(8).map(not_five, {.threads = 3})}) {
    auto numbers = dataset.make_iterator();
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(numbers.next(), i);
    expect_error(Code::data_loss, "five", [&] { numbers.next(); });
    EXPECT_EQ(numbers.next(), 6);
    EXPECT_EQ(numbers.next(), 7);
    expect_error_naming(Code::out_of_range, {}, [&] { numbers.next(); });
    EXPECT_EQ(numbers.try_next(), std::nullopt);
  }
}

TEST(Dataset, ZippedStreamsStayAlignedAfterAnError) {
  auto pairs = zip(Data::range(8).map(not_five), Data::range(8)).skip(5).make_iterator();
  expect_error(Code::data_loss, "five", [&] { pairs.next(); });
  EXPECT_EQ(pairs.next(), std::pair(std::int64_t{6}, std::int64_t{6}));
}

TEST(Dataset, AZipStaysAtItsEnd) {
  auto zipped = zip(Data::range(3), Data::range(20).map(not_five)).make_iterator();
  for (int i = 0; i < 3; ++i) zipped.next();
  const auto expect_end = [&] {
    for (int i = 0; i < 9; ++i) EXPECT_FALSE(zipped.try_next());  // the longer stream has its error here
  };
  expect_end();
  zipped.restore(zipped.position());
  expect_end();
}

TEST(Dataset, IteratesAsARange) {
  const auto numbers = Data::range(4);
  std::int64_t sum = 0;
  for (const auto number : numbers) sum += number;
  for (auto at = numbers.begin(); at != numbers.end(); ++at) sum += *at;
  EXPECT_EQ(sum, 12);
}

}  // namespace
}  // namespace capstan
