// traffic_test.cpp -- histograms of times, quantiles, and counters that another thread reads.
#include "cluster/traffic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "capstan/serialize.hpp"

namespace capstan::cluster {
namespace {

TEST(Times, EachTimeIsBelowTheUpperBoundOfItsBucket) {
  std::size_t last = 0;
  for (std::uint64_t ns = 1; ns < 1'000'000; ns += 1 + ns / 50) {
    const std::size_t bucket = Times::bucket_of(ns);
    EXPECT_GE(bucket, last) << ns;
    last = bucket;
    const double seconds = static_cast<double>(ns) * 1e-9;
    EXPECT_LT(seconds, Times::bound(bucket)) << ns;
    if (ns >= 4) {
      EXPECT_LE(Times::bound(bucket), 1.26 * seconds + 1.1e-9) << ns;
    }
  }
  EXPECT_EQ(Times::bucket_of(0), 0U);
  EXPECT_EQ(Times::bucket_of(~std::uint64_t{0}), Times::kBuckets - 1);
}

TEST(Times, QuantilesMatchSortedTimes) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> microseconds(3, 1.5);
  Times times;
  std::vector<double> all;
  for (int i = 0; i < 10'000; ++i) {
    const auto ns = static_cast<std::uint64_t>(microseconds(random) * 1000);
    ++times.counts[Times::bucket_of(ns)];
    all.push_back(static_cast<double>(ns) * 1e-9);
  }
  std::sort(all.begin(), all.end());
  for (const double part : {0.5, 0.9, 0.99}) {
    const double exact = all[static_cast<std::size_t>(part * 10'000) - 1];
    EXPECT_GE(times.quantile(part), exact) << part;
    EXPECT_LE(times.quantile(part), 1.26 * exact) << part;
  }
  EXPECT_EQ(Times{}.quantile(0.5), 0);
}

TEST(Times, DifferenceContainsThePeriod) {
  Times before;
  before.counts[10] = 5;
  Times now = before;
  now.counts[10] += 2;
  now.counts[50] += 1;
  const Times added = now.since(before);
  EXPECT_EQ(added.count(), 3U);
  EXPECT_EQ(added.counts[10], 2U);
  EXPECT_EQ(before.since(now).count(), 0U) << "a difference must not be below 0";
}

TEST(Traffic, ReaderSeesWhatTheWriterCounted) {
  Traffic traffic;
  constexpr std::uint64_t kCalls = 200'000;
  std::jthread writer([&] {
    for (std::uint64_t i = 0; i < kCalls; ++i) {
      const Traffic::Timed timed(traffic.pull);
      traffic.pull.count(3, 12);
    }
  });
  std::uint64_t seen = 0;
  while (seen < kCalls) {
    const CallMetrics now = traffic.pull.metrics();
    EXPECT_GE(now.calls, seen);
    seen = now.calls;
    std::this_thread::yield();
  }
  writer.join();
  const CallMetrics all = traffic.pull.metrics();
  EXPECT_EQ(all.rows, 3 * kCalls);
  EXPECT_EQ(all.bytes, 12 * kCalls);
  EXPECT_EQ(all.times.count(), 1 + (kCalls - 2) / 127) << "samples the second call and every 127th after it";
  EXPECT_EQ(traffic.metrics().push.calls, 0U);
}

TEST(Traffic, SerializesNonzeroCountersOnly) {
  CallMetrics counted{5, 10, 40};
  counted.times.counts[7] = 4;
  counted.times.counts[127] = 1;
  const auto bytes = to_bytes(packed(counted));
  EXPECT_LT(bytes.size(), 100U);
  const CallMetrics back = unpacked(from_bytes<PackedCalls>(bytes));
  EXPECT_EQ(back.rows, counted.rows);
  EXPECT_EQ(back.times.counts, counted.times.counts);
  PackedCalls wrong;
  wrong.times.emplace_back(128, 1);
  EXPECT_EQ(unpacked(wrong).times.count(), 0U);
}

}  // namespace
}  // namespace capstan::cluster
