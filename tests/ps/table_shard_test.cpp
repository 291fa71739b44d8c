// table_shard_test.cpp -- pushes to keys of a dynamic table, and its recovery by a restarted ps.
// Tests: src/ps/shard/admission_draw.hpp
#include "ps/shard/table_shard.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "ps/durability/store_snapshot.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/admission_draw.hpp"
#include "ps/shard/store.hpp"
#include "ps/store_process.hpp"
#include "support/expect_error.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

using Keys = std::vector<std::int64_t>;
using protocol::RowOp;

constexpr std::uint64_t kWidth = 3;

protocol::CreateShard table(std::uint32_t id, const Optimizer& optimizer = optimizers::SGD{1},
                            std::uint64_t rows = 100'000, const Initializer& initializer = {}) {
  protocol::CreateShard request;
  request.variable = id;
  request.name = "user";
  request.dtype = DType::float64;
  request.shape = {rows, kWidth};
  request.rows = rows;
  request.optimizer = optimizer;
  request.initializer = initializer;
  request.table = true;
  return request;
}

/// A table that holds `keys` keys.
protocol::CreateShard evicting_table(std::uint64_t keys, WhenFull when_full,
                                     const Optimizer& optimizer = optimizers::SGD{1}) {
  protocol::CreateShard request = table(1, optimizer, keys + 1 + protocol::kSpareRows);
  request.policy.when_full = when_full;
  return request;
}

Keys range(std::int64_t first, std::int64_t end) {
  Keys keys(static_cast<std::size_t>(end - first));
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

std::vector<double> read(Store& store, const Keys& keys, MissingKeys missing = MissingKeys::zeros) {
  std::vector<double> out(keys.size() * kWidth);
  store.gather_keys(store.view(1, 0), keys, missing, reinterpret_cast<std::byte*>(out.data()));
  return out;
}
std::vector<double> rows_of(const Keys& keys, double value) {
  return std::vector<double>(keys.size() * kWidth, value);
}

template <class... More>
std::vector<double> joined(std::vector<double> first, const More&... more) {
  (first.insert(first.end(), more.begin(), more.end()), ...);
  return first;
}

class TableShardTest : public testing::Test {
 protected:
  void push(const Keys& keys, double gradient, RowOp op = RowOp::gradient) {
    apply_entry(store_,
                keyed_entry(1, keys, has_values(op) ? rows_of(keys, gradient) : std::vector<double>{}, op));
  }
  /// Pushes as a worker of update group 1.
  void push_held(std::uint32_t rank, const Keys& keys, double gradient) {
    std::vector<std::byte> entry = keyed_entry(1, keys, rows_of(keys, gradient));
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    header.rank = rank;
    std::memcpy(entry.data(), &header, sizeof header);
    apply_entry(store_, entry);
  }
  /// Ends a step of a worker of update group 1.
  void end_step(std::uint32_t rank, std::uint64_t step = 1) {
    protocol::PushHeader header;
    header.kind = protocol::PushKind::step;
    header.variable = 1;
    header.rank = rank;
    header.first_row = step;
    header.bytes = sizeof header;
    store_.apply(header, {}, nullptr);
  }
  protocol::TableStatistics statistics() { return store_.table_statistics({1, 0}); }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  Store store_{*fabric_, 1 << 20, 0};
};

TEST_F(TableShardTest, AddsKeysWithTheirFirstPush) {
  store_.create(table(1, optimizers::SGD{1}, 100'000, initializers::constant(5)));
  EXPECT_EQ(read(store_, {7, -7}), rows_of({7, -7}, 0));  // missing
  EXPECT_EQ(read(store_, {7}, MissingKeys::initial), rows_of({7}, 5));
  push({7, -7, 7}, 1);  // SGD applies duplicates one by one
  EXPECT_EQ(read(store_, {-7}), rows_of({-7}, 4));
  EXPECT_EQ(read(store_, {7}), rows_of({7}, 3));
  EXPECT_EQ(statistics().keys, 2U);
  EXPECT_EQ(store_.find_keys({1, 0, {7, 8, -7}}), (std::vector<std::uint8_t>{1, 0, 1}));
}

TEST_F(TableShardTest, AppliesRowOperationsToKeys) {
  store_.create(table(1));
  push({1, 2}, 10, RowOp::set);
  push({2, 3}, 1, RowOp::add);
  push({4}, 0, RowOp::insert);
  EXPECT_EQ(read(store_, {1}), rows_of({1}, 10));
  EXPECT_EQ(read(store_, {2}), rows_of({2}, 11));
  EXPECT_EQ(read(store_, {3}), rows_of({3}, 1));
  EXPECT_EQ(store_.list_keys({1, 0, 0, 100}).keys, (Keys{1, 2, 3, 4}));
}

TEST_F(TableShardTest, ReusesTheRowsOfErasedKeys) {
  store_.create(table(1, optimizers::Adagrad{.learning_rate = 1, .initial_accumulator = 0.1}));
  push({1, 2, 3}, 1);
  const std::vector<double> of_new_key = read(store_, {1});
  push({2, 2, 9}, 0, RowOp::erase);
  EXPECT_EQ(read(store_, {2}), rows_of({2}, 0));
  push({20}, 1);
  EXPECT_EQ(read(store_, {20}), of_new_key);  // neither values nor slots of the erased key remain
  const protocol::TableStatistics now = statistics();
  EXPECT_EQ(now.keys, 3U);
  EXPECT_EQ(now.erased, 1U);
  EXPECT_EQ(store_.list_keys({1, 0, 0, 100}).rows_end, 4U);
}

TEST_F(TableShardTest, InitialRowsDependOnTheKeyOnly) {
  store_.create(table(1, optimizers::SGD{1}, 1000, initializers::uniform(-1, 1, 3)));
  store_.create(table(2, optimizers::SGD{1}, 500, initializers::uniform(-1, 1, 3)));
  push({5, 6, 1'000'000'007}, 0, RowOp::insert);
  apply_entry(store_, keyed_entry<double>(2, {1'000'000'007, 5}, {}, RowOp::insert));
  std::vector<double> other(2 * kWidth);
  store_.gather_keys(store_.view(2, 0), Keys{5, 1'000'000'007}, MissingKeys::error,
                     reinterpret_cast<std::byte*>(other.data()));
  EXPECT_EQ(read(store_, {5, 1'000'000'007}), other);
  EXPECT_EQ(read(store_, {77}, MissingKeys::initial).size(), kWidth);
  EXPECT_NE(other[0], other[kWidth]);
}

TEST_F(TableShardTest, RefusesKeysBeyondItsRowsAndUpdatesTheOthers) {
  store_.create(table(1, optimizers::SGD{1}, 4));  // three keys and the default row
  push({1, 2}, 1);
  push({3, 4, 1, 5}, 1);
  EXPECT_EQ(read(store_, {1}), rows_of({1}, -2));
  EXPECT_EQ(read(store_, {3}), rows_of({3}, -1));
  EXPECT_EQ(read(store_, {4}), rows_of({4}, 0));
  EXPECT_EQ(statistics().refused, 2U);
  EXPECT_EQ(read(store_, {5}), rows_of({5}, 0));  // the default row is unchanged
  push({1}, 0, RowOp::erase);
  push({5}, 1);
  EXPECT_EQ(read(store_, {5}), rows_of({5}, -1));
}

TEST_F(TableShardTest, RejectsEntriesThatDoNotFit) {
  store_.create(table(1));
  protocol::CreateShard variable = table(2);
  variable.table = false;
  variable.shape = {4, kWidth};
  variable.rows = 4;
  store_.create(variable);
  apply_entry(store_, keyed_entry(2, {1}, rows_of({1}, 1)));                  // no table
  apply_entry(store_, keyed_entry(1, {1}, std::vector<double>(kWidth + 8)));  // other row size
  EXPECT_EQ(statistics().keys, 0U);
  push({7}, 5, RowOp::set);
  apply_entry(store_,
              push_entry<double>(1, 0, {1}, 0, kWidth, std::vector<double>(kWidth, 1)));  // by row number
  EXPECT_EQ(read(store_, {7}), rows_of({7}, 5));
  expect_error_naming(Code::invalid_argument, {"2"}, [&] { (void)store_.table_statistics({2, 0}); });
  expect_error_naming(Code::not_found, {"3"}, [&] { (void)store_.table_statistics({3, 0}); });
}

TEST_F(TableShardTest, RepeatedEntryDoesNotRestoreErasedKeys) {
  store_.create(table(1));
  std::vector<std::byte> entry = keyed_entry(1, {1, 2}, rows_of({1, 2}, 1));
  protocol::PushHeader header;
  std::memcpy(&header, entry.data(), sizeof header);
  header.closure = 5;
  header.rank = 1;
  std::memcpy(entry.data(), &header, sizeof header);
  apply_entry(store_, entry);
  push({1}, 0, RowOp::erase);
  header.again = 1;
  header.rank = 2;
  std::memcpy(entry.data(), &header, sizeof header);
  store_.remove_worker(1);
  apply_entry(store_, entry);
  EXPECT_EQ(store_.find_keys({1, 0, {1, 2}}), (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(read(store_, {2}), rows_of({2}, -1));
}

TEST_F(TableShardTest, RejectsGpuMemoryAndTheIdentityInitializer) {
  for (const auto change : std::initializer_list<void (*)(protocol::CreateShard&)>{

           [](protocol::CreateShard& t) { t.memory = ShardMemory::device; },
           [](protocol::CreateShard& t) { t.initializer.kind = InitializerKind::identity; }}) {
    protocol::CreateShard request = table(1);
    change(request);
    expect_error_naming(Code::unimplemented, {"\"user\""}, [&] { (void)store_.create(request); });
  }
}

TEST_F(TableShardTest, AppliesTheStepOfAGroupToTheKeysThatExistAtItsEnd) {
  store_.create_group(
      {.id = 1, .mode = protocol::GroupMode::synchronous, .average = false, .workers = {1, 2}});
  protocol::CreateShard request = table(1);
  request.group = 1;
  store_.create(request);
  push({10, 20}, -1, RowOp::add);
  push_held(1, {10, 20, 30}, 4);
  push_held(2, {30, 40}, 4);
  EXPECT_EQ(read(store_, {10, 20, 30, 40}), joined(rows_of({10, 20}, -1), rows_of({30, 40}, 0)));
  push({10}, 0, RowOp::erase);
  push({50}, 7, RowOp::set);  // takes the row of key 10
  end_step(1);
  end_step(2);
  EXPECT_EQ(
      read(store_, {10, 20, 30, 40, 50}),
      joined(rows_of({10}, -4), rows_of({20}, -5), rows_of({30}, -8), rows_of({40}, -4), rows_of({50}, 7)));
  EXPECT_EQ(statistics().keys, 5U);
}

TEST_F(TableShardTest, AddsAnyNumberOfKeysInAStepOfAGroup) {
  constexpr std::int64_t kCapacity = 1000;
  constexpr std::int64_t kKeys = 60'000;
  store_.create_group({.id = 1, .mode = protocol::GroupMode::synchronous, .average = false, .workers = {1}});
  protocol::CreateShard request = evicting_table(kCapacity, WhenFull::evict_least_recent);
  request.group = 1;
  store_.create(request);
  for (std::int64_t first = 0; first < kKeys; first += 1000) push_held(1, range(first, first + 1000), 1);
  end_step(1);
  EXPECT_EQ(statistics().refused, 0U);
  EXPECT_EQ(statistics().inserted, kKeys);
  EXPECT_EQ(statistics().keys, kKeys - statistics().evicted);
  EXPECT_LT(statistics().keys, 3 * 4096U);
  const std::vector<double> values = read(store_, range(0, kKeys));
  EXPECT_EQ(std::count(values.begin(), values.end(), -1.0),
            static_cast<std::ptrdiff_t>(statistics().keys * kWidth));
  EXPECT_EQ(read(store_, {kKeys - 1}), rows_of({0}, -1));
}

TEST_F(TableShardTest, DropsTheGradientsOfAStepWhoseKeysAreNotAdmitted) {
  store_.create_group(
      {.id = 1, .mode = protocol::GroupMode::synchronous, .average = false, .workers = {1, 2}});
  protocol::CreateShard request = table(1);
  request.group = 1;
  request.policy.admit_after = 2;
  store_.create(request);
  push_held(1, {10, 20}, 1);
  push_held(2, {20}, 1);
  end_step(1);
  end_step(2);
  EXPECT_EQ(read(store_, {10, 20}), joined(rows_of({10}, 0), rows_of({20}, -2)));
  EXPECT_EQ(statistics().not_admitted, 2U);
}

TEST_F(TableShardTest, SnapshotExcludesLaterChanges) {
  store_.create(table(1));
  Keys keys(3000);
  std::iota(keys.begin(), keys.end(), 1);
  push(keys, 5, RowOp::set);
  StoreSnapshot snapshot(store_);
  ASSERT_TRUE(snapshot.advance());
  push({1, 2}, 6, RowOp::set);
  push({3, 4}, 0, RowOp::erase);
  push({100'001, 100'002}, 7, RowOp::set);  // take the rows of 3 and 4
  Keys more(5000);
  std::iota(more.begin(), more.end(), 200'000);
  push(more, 8, RowOp::set);  // rows that the snapshot does not have
  const auto arrays = snapshot.parts(1).at(0);
  ASSERT_EQ(arrays.size(), 3U);  // values, keys, states
  EXPECT_EQ(arrays[0].variable, "user/part_0");
  const std::uint64_t rows = arrays[0].rows;
  EXPECT_GE(rows, 3001U);
  EXPECT_LE(rows, 4096U);
  std::vector<double> values(rows * kWidth);
  std::vector<std::int64_t> saved_keys(rows);
  std::vector<std::uint32_t> states(rows);
  arrays[0].read(0, rows, reinterpret_cast<std::byte*>(values.data()));
  arrays[1].read(0, rows, reinterpret_cast<std::byte*>(saved_keys.data()));
  arrays[2].read(0, rows, reinterpret_cast<std::byte*>(states.data()));
  Keys found;
  for (std::uint64_t row = 0; row < rows; ++row) {
    if (states[row] == 0) continue;
    found.push_back(saved_keys[row]);
    EXPECT_EQ(values[row * kWidth], 5);
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, keys);
}

TEST_F(TableShardTest, AgreesWithAMapOverRandomOperations) {
  store_.create(table(1));
  std::map<std::int64_t, double> model;
  std::mt19937_64 random(5);
  for (int step = 0; step < 3000; ++step) {
    Keys keys;
    for (std::uint64_t i = random() % 200; i > 0; --i)
      keys.push_back(static_cast<std::int64_t>(random() % 20'000));
    const std::uint64_t what = random() % 4;
    const RowOp op = what == 0 ? RowOp::erase : what == 1 ? RowOp::set : RowOp::gradient;
    const auto value = static_cast<double>(random() % 100);
    push(keys, value, op);
    for (const std::int64_t key : keys) {
      if (op == RowOp::erase) model.erase(key);
      if (op == RowOp::set) model[key] = value;
      if (op == RowOp::gradient) model[key] -= value;
    }
  }
  ASSERT_EQ(statistics().keys, model.size());
  for (const auto& [key, value] : model) ASSERT_EQ(read(store_, {key}), rows_of({key}, value)) << key;
}

TEST_F(TableShardTest, EvictsKeysWithoutRecentPushes) {
  store_.create(evicting_table(1000, WhenFull::evict_least_recent));
  const Keys hot = range(-100, 0);
  for (std::int64_t first = 0; first < 20'000; first += 50) {
    push(hot, -1);
    push(range(first, first + 50), -1);
    ASSERT_LE(statistics().keys, 1050U);
  }
  push(hot, -1);
  const protocol::TableStatistics now = statistics();
  EXPECT_EQ(now.keys, 1000U);
  EXPECT_EQ(now.most_keys, 1000U);
  EXPECT_EQ(now.evicted, now.inserted - now.keys);
  EXPECT_EQ(now.refused, 0U);
  EXPECT_EQ(read(store_, hot), rows_of(hot, 401));
  EXPECT_LT(store_.list_keys({1, 0, 0, 100'000}).rows_end, 1200U) << "rows of evicted keys must be reused";
  // The values of a key are its own: it was pushed to once, or is missing.
  const Keys cold = range(0, 20'000);
  const std::vector<double> values = read(store_, cold);
  const std::vector<std::uint8_t> found = store_.find_keys({1, 0, cold});
  for (std::size_t i = 0; i < cold.size(); ++i) ASSERT_EQ(values[i * kWidth], found[i]) << i;
}

TEST_F(TableShardTest, KeepsRecentKeysOfASmallTableAfterALargePush) {
  store_.create(evicting_table(100, WhenFull::evict_least_recent));
  push(range(0, 7000), -1);
  const Keys hot = range(-50, 0);
  for (std::int64_t first = 10'000; first < 20'000; first += 100) {
    push(hot, -1);
    push(range(first, first + 20), -1);
  }
  EXPECT_LE(statistics().keys, 170U);
  const std::uint64_t recent = statistics().inserted;
  for (int time = 0; time < 10; ++time) push(hot, -1);
  EXPECT_EQ(statistics().inserted, recent) << "a recently pushed key was evicted";
}

TEST_F(TableShardTest, EvictsKeysWithFewPushes) {
  store_.create(evicting_table(1000, WhenFull::evict_least_frequent));
  const Keys frequent = range(-100, 0);
  for (int time = 0; time < 20; ++time) push(frequent, -1);
  for (std::int64_t first = 0; first < 3000; first += 50) push(range(first, first + 50), -1);
  EXPECT_EQ(read(store_, frequent), rows_of(frequent, 20));
  EXPECT_GT(statistics().evicted, 2000U);
}

TEST_F(TableShardTest, EvictsKeysByAge) {
  constexpr std::int64_t kAge = 100;
  protocol::CreateShard request = table(1);
  request.policy.evict_after = kAge;
  store_.create(request);
  const Keys hot = range(-100, 0);
  for (std::int64_t first = 0; first < 20'000; first += 50) {
    push(hot, -1);
    push(range(first, first + 50), -1);
  }
  const protocol::TableStatistics now = statistics();
  // 50 of 2 pushes are new; they live for at least kAge pushes, and are found within a sweep.
  EXPECT_GE(now.keys, 100U + 50 * kAge / 2);
  EXPECT_LE(now.keys, 100U + 50 * kAge / 2 * 13 / 10);
  EXPECT_EQ(now.evicted, now.inserted - now.keys);
  EXPECT_EQ(now.refused, 0U);
  EXPECT_EQ(read(store_, hot), rows_of(hot, 400)) << "a key with recent pushes was evicted";
  const std::vector<std::uint8_t> recent = store_.find_keys({1, 0, range(20'000 - 50 * kAge / 2, 20'000)});
  EXPECT_EQ(std::count(recent.begin(), recent.end(), 1), 50 * kAge / 2);
  EXPECT_LT(store_.list_keys({1, 0, 0, 100'000}).rows_end, 4000U) << "rows of evicted keys must be reused";
}

TEST_F(TableShardTest, CountsAStepOfAGroupOnceForTheAgeOfKeys) {
  store_.create_group(
      {.id = 1, .mode = protocol::GroupMode::synchronous, .average = false, .workers = {1, 2}});
  protocol::CreateShard request = table(1);
  request.group = 1;
  request.policy.evict_after = 3;
  store_.create(request);
  std::uint64_t step = 0;
  const auto take_step = [&](std::int64_t key) {
    ++step;
    for (const std::uint32_t rank : {1, 2}) push_held(rank, {key}, 1);
    for (const std::uint32_t rank : {1, 2}) end_step(rank, step);
  };
  take_step(7);
  for (int other = 0; other < 3; ++other) take_step(8);
  EXPECT_EQ(statistics().keys, 2U);
  for (int other = 0; other < 3; ++other) take_step(8);
  EXPECT_EQ(store_.find_keys({1, 0, {7, 8}}), (std::vector<std::uint8_t>{0, 1}));
}

TEST_F(TableShardTest, CountsTheKeysThatLookupsFind) {
  store_.create(table(1));
  push({5, 6}, 1);
  (void)read(store_, {5, 6, 7});
  (void)read(store_, {8}, MissingKeys::initial);
  EXPECT_EQ(store_.statistics().keys.found, 2U);
  EXPECT_EQ(store_.statistics().keys.missing, 2U);
}

TEST_F(TableShardTest, ReportsHowManyLinesOfTheIndexASearchReads) {
  store_.create(table(1));
  EXPECT_EQ(statistics().probes(), 0);
  push({5}, 1);
  EXPECT_EQ(statistics().probes(), 1);
  push(range(0, 50'000), 1);
  EXPECT_GE(statistics().sampled_keys, 1000U);
  EXPECT_GT(statistics().probes(), 1);
  EXPECT_LT(statistics().probes(), 1.5);
}

TEST_F(TableShardTest, AddsKeysWhenTheyAreAdmitted) {
  protocol::CreateShard request = table(1);
  request.policy.admit_after = 3;
  store_.create(request);
  push({5}, -1);
  push({5, 6}, -1);
  EXPECT_EQ(statistics().keys, 0U);
  EXPECT_EQ(statistics().not_admitted, 3U);
  push({5}, -1);
  EXPECT_EQ(read(store_, {5, 6}), (std::vector<double>{1, 1, 1, 0, 0, 0})) << "earlier gradients are dropped";
  push({7}, 4, RowOp::set);
  push({8}, 0, RowOp::insert);
  EXPECT_EQ(statistics().keys, 3U) << "only gradients need admission";
  EXPECT_EQ(statistics().refused, 0U);
}

TEST_F(TableShardTest, AddsKeysWithAProbability) {
  protocol::CreateShard request = table(1);
  request.policy.admit_probability = 0.25;
  store_.create(request);
  const Keys keys = range(0, 4000);
  const auto push_as = [&](std::uint32_t call) {
    std::vector<std::byte> entry = keyed_entry(1, keys, rows_of(keys, -1));
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    header.call = call;
    std::memcpy(entry.data(), &header, sizeof header);
    apply_entry(store_, entry);
  };
  push_as(1);
  const std::uint64_t first = statistics().keys;
  EXPECT_NEAR(static_cast<double>(first), 1000, 150) << "more than five standard deviations of 27";
  EXPECT_EQ(statistics().not_admitted, keys.size() - first);
  push_as(1);
  EXPECT_EQ(statistics().keys, first) << "the same push draws the same numbers";
  push_as(2);
  EXPECT_NEAR(static_cast<double>(statistics().keys), 1000 + 750, 150) << "another push draws other numbers";
  push({-1}, 0, RowOp::insert);
  push({-2}, 4, RowOp::set);
  EXPECT_EQ(read(store_, {-1, -2}, MissingKeys::error), joined(rows_of({-1}, 0), rows_of({-2}, 4)));
}

TEST(AdmissionDraw, DependsOnTheKeyAndThePushOnly) {
  protocol::PushHeader entry;
  entry.closure = 7;
  entry.replica = 2;
  entry.call = 3;
  const double draw = admission_draw(5, entry);
  protocol::PushHeader again = entry;
  again.rank = 9;
  again.part = 4;
  again.first_part = 0;
  again.again = 1;
  EXPECT_EQ(admission_draw(5, again), draw) << "another worker, another part of the push";
  EXPECT_NE(admission_draw(6, entry), draw);
  for (const auto member : {&protocol::PushHeader::call, &protocol::PushHeader::rank}) {
    protocol::PushHeader outside;
    outside.rank = outside.call = 1;
    protocol::PushHeader other = outside;
    ++(other.*member);
    EXPECT_NE(admission_draw(5, other), admission_draw(5, outside));
  }
  protocol::PushHeader other = entry;
  ++other.closure;
  EXPECT_NE(admission_draw(5, other), draw);
  other = entry;
  ++other.replica;
  EXPECT_NE(admission_draw(5, other), draw);
}

TEST(AdmissionDraw, DoesNotDependOnTheShardOfAKey) {
  const protocol::PushHeader first;  // as for the first step of a group
  std::vector<int> keys(2), drawn(2);
  for (std::int64_t key = 0; key < 10'000; ++key) {
    const std::uint32_t shard = protocol::shard_of_hash(protocol::hash_of(key), 2);
    ++keys[shard];
    drawn[shard] += admission_draw(key, first) < 0.25 ? 1 : 0;
  }
  for (int shard = 0; shard < 2; ++shard) EXPECT_NEAR(drawn[shard], keys[shard] / 4.0, 160);
}

TEST_F(TableShardTest, DrawsOnceForAStepOfAGroup) {
  const auto keys_after_step = [&](const std::vector<std::uint32_t>& ranks) {
    transport::LoopHub hub;
    const auto fabric = hub.open();
    Store store{*fabric, 1 << 20, 0};
    store.create_group(
        {.id = 1, .mode = protocol::GroupMode::synchronous, .average = false, .workers = {1, 2}});
    protocol::CreateShard request = table(1);
    request.group = 1;
    request.policy.admit_probability = 0.25;
    store.create(request);
    const Keys keys = range(0, 10'000);  // several entries
    for (const std::uint32_t rank : {1U, 2U}) {
      protocol::PushHeader header;
      if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) {
        std::vector<std::byte> entry = keyed_entry(1, keys, rows_of(keys, -1));
        std::memcpy(&header, entry.data(), sizeof header);
        header.rank = rank;
        header.closure = 100 + rank;
        std::memcpy(entry.data(), &header, sizeof header);
        apply_entry(store, entry);
      }
      protocol::PushHeader step;
      step.kind = protocol::PushKind::step;
      step.variable = 1;
      step.rank = rank;
      step.first_row = 1;
      step.bytes = sizeof step;
      store.apply(step, {}, nullptr);
    }
    return store.table_statistics({1, 0}).keys;
  };
  const std::uint64_t keys = keys_after_step({1, 2});
  EXPECT_NEAR(static_cast<double>(keys), 2500, 250);
  EXPECT_EQ(keys_after_step({2}), keys) << "whatever workers push";
}

TEST_F(TableShardTest, TrainsTheDefaultRowWithKeysThatAreNotAdmitted) {
  protocol::CreateShard request =
      table(1, optimizers::Adagrad{.learning_rate = 1, .initial_accumulator = 0.25, .epsilon = 0});
  request.policy = {.missing = MissingKeys::default_row, .when_full = {}, .admit_after = 2};
  store_.create(request);
  push({5}, -1);
  const double step = 1 / std::sqrt(1.25);
  EXPECT_NEAR(read(store_, {5}, MissingKeys::default_row)[0], step, 1e-12);
  push({5}, -1);
  EXPECT_NEAR(read(store_, {5}, MissingKeys::error)[0], step, 1e-12) << "begins with the initial values";
}

class TableProcess : public StoreProcess {
 public:
  using StoreProcess::StoreProcess;
  void push(const Keys& keys, double gradient, RowOp op, bool commit) {
    apply(keyed_entry(1, keys, has_values(op) ? rows_of(keys, gradient) : std::vector<double>{}, op), commit);
  }
};

class TableRecoveryTest : public testing::Test {
 protected:
  void restart() {
    process_.emplace(memory_);
    process_->store().recover();
  }
  std::shared_ptr<transport::PersistentMemory> memory_ = transport::PersistentMemory::create();
  std::optional<TableProcess> process_{std::in_place, memory_};
};

TEST_F(TableRecoveryTest, RestartedPsHasAllCommittedKeys) {
  process_->store().create(table(1, optimizers::Adam{}));
  Keys keys;
  for (std::int64_t key = 0; key < 5000; ++key) keys.push_back(key * key);
  for (std::size_t first = 0; first < keys.size(); first += 500)
    process_->push(Keys(keys.begin() + static_cast<std::ptrdiff_t>(first),
                        keys.begin() + static_cast<std::ptrdiff_t>(first + 500)),
                   1, RowOp::gradient, true);
  process_->push({0, 1, 4}, 0, RowOp::erase, true);
  const std::vector<double> before = read(process_->store(), keys);
  restart();
  EXPECT_EQ(read(process_->store(), keys), before);
  EXPECT_EQ(process_->store().table_statistics({1, 0}).keys, 4997U);
  process_->push({0}, 1, RowOp::gradient, true);
  EXPECT_EQ(process_->store().list_keys({1, 0, 0, 10'000}).rows_end, 5001U);  // reuses an erased row
}

TEST_F(TableRecoveryTest, RestartedPsUndoesAnUncommittedEntry) {
  process_->store().create(table(1, optimizers::Adagrad{}));
  process_->push({1, 2, 3}, 1, RowOp::gradient, true);
  const std::vector<double> before = read(process_->store(), {1, 2, 3, 4});
  process_->push({3, 4, 5}, 1, RowOp::gradient, false);
  restart();
  EXPECT_EQ(read(process_->store(), {1, 2, 3, 4}), before);
  EXPECT_EQ(process_->store().find_keys({1, 0, {3, 4, 5}}), (std::vector<std::uint8_t>{1, 0, 0}));
  process_->push({1, 2}, 0, RowOp::erase, false);
  restart();
  EXPECT_EQ(read(process_->store(), {1, 2, 3, 4}), before);
  process_->push({4}, 1, RowOp::gradient, true);
  EXPECT_EQ(read(process_->store(), {4}), read(process_->store(), {1}));
}

TEST_F(TableRecoveryTest, RestartedPsUndoesTheEvictionsOfAnEntry) {
  process_->store().create(evicting_table(200, WhenFull::evict_least_recent, optimizers::Adam{}));
  process_->push(range(0, 200), 1, RowOp::gradient, true);
  process_->push(range(200, 300), 1, RowOp::gradient, true);
  const Keys all = range(0, 500);
  const std::vector<double> before = read(process_->store(), all);
  process_->push(range(300, 400), 1, RowOp::gradient, false);
  EXPECT_EQ(process_->store().table_statistics({1, 0}).evicted, 100U);
  restart();
  EXPECT_EQ(read(process_->store(), all), before);
  for (std::int64_t first = 300; first < 3000; first += 100)
    process_->push(range(first, first + 100), 1, RowOp::gradient, true);
  const auto now = process_->store().table_statistics({1, 0});
  EXPECT_EQ(now.refused, 0U);
  EXPECT_LE(now.keys, 300U);
  EXPECT_LE(process_->store().list_keys({1, 0, 0, 100'000}).rows_end, 602U);
}

TEST_F(TableRecoveryTest, RestartedPsHasTheOccurrencesOfKeysThatAreNotAdmittedYet) {
  protocol::CreateShard request = table(1);
  request.policy.admit_after = 3;
  process_->store().create(request);
  process_->push({5, 5, 6}, 1, RowOp::gradient, true);
  restart();
  process_->push({5, 6}, 1, RowOp::gradient, true);
  EXPECT_EQ(process_->store().find_keys({1, 0, {5, 6}}), (std::vector<std::uint8_t>{1, 0}));
}

/// Entry `i` of a sequence that adds, updates, evicts and erases keys, and makes the index grow.
struct SequenceEntry {
  Keys keys;
  double gradient = 0;
  RowOp op = RowOp::gradient;
};
SequenceEntry sequence_entry(std::int64_t i) {
  if (i % 5 == 4) return {range(40 * i, 40 * i + 100), 0, RowOp::erase};
  return {range(100 * i, 100 * i + 400), static_cast<double>(i + 1), RowOp::gradient};
}
constexpr std::int64_t kSequenceKeys = 20'000;  // the first entries use keys below it
constexpr std::int64_t kSequenceLength = (kSequenceKeys - 400) / 100;

/// Returns the contents of the table: the rows of all keys, -1e300 for keys that do not exist.
std::vector<double> contents(Store& store) {
  const Keys keys = range(0, kSequenceKeys);
  std::vector<double> rows = read(store, keys);
  const std::vector<std::uint8_t> found = store.find_keys({1, 0, keys});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (found[i / kWidth] == 0) rows[i] = -1e300;  // no row of the sequence has this value
  }
  return rows;
}

/// Applies the sequence in a child process, which is killed once it has applied `entries`; returns the number
/// of entries that it committed.
std::int64_t killed_after(const std::shared_ptr<transport::PersistentMemory>& memory, WhenFull when_full,
                          std::int64_t entries) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    try {
      TableProcess process(memory);
      process.store().create(evicting_table(2000, when_full, optimizers::Adam{}));
      for (std::int64_t i = 0; i < kSequenceLength; ++i) {
        const SequenceEntry entry = sequence_entry(i);
        process.push(entry.keys, entry.gradient, entry.op, true);
        if (::write(ends[1], "e", 1) != 1) _exit(2);
      }
      while (true) pause();  // the parent kills it, however late it runs
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(1);
  }
  close(ends[1]);
  std::int64_t applied = 0;
  for (char byte = 0; applied < entries && ::read(ends[0], &byte, 1) == 1;) ++applied;
  // Without this, a parent that wakes on the child's core always kills it between two entries.
  std::this_thread::sleep_for(std::chrono::microseconds(7 * entries % 200));
  kill(child, SIGKILL);
  for (char byte = 0; ::read(ends[0], &byte, 1) == 1;) ++applied;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "entries applied: " << applied;
  return applied;
}

TEST(TableKillTest, RestartedPsHasTheCommittedEntriesOnly) {
  int undone = 0;
  for (const WhenFull when_full : {WhenFull::evict_least_recent, WhenFull::evict_least_frequent}) {
    for (std::int64_t kill = 0; kill < 25; ++kill) {
      const auto memory = transport::PersistentMemory::create();
      const std::int64_t applied = killed_after(memory, when_full, 1 + 5 * kill);
      TableProcess process(memory);
      process.store().recover();
      const std::vector<double> found = contents(process.store());
      const auto committed = process.store().table_statistics({1, 0});

      transport::LoopHub hub;
      const std::unique_ptr<transport::Fabric> fabric = hub.open();
      Store model(*fabric, 1 << 20, 0);
      model.create(evicting_table(2000, when_full, optimizers::Adam{}));
      std::int64_t equal_to = -1;
      // The ps may have committed one more entry than it reported.
      for (std::int64_t i = 0; i <= applied && equal_to < 0; ++i) {
        const SequenceEntry entry = sequence_entry(i);
        apply_entry(model, keyed_entry(1, entry.keys,
                                       has_values(entry.op) ? rows_of(entry.keys, entry.gradient)
                                                            : std::vector<double>{},
                                       entry.op));
        if (i + 1 >= applied && contents(model) == found) equal_to = i + 1;
      }
      EXPECT_GE(equal_to, applied) << "killed after " << applied << " entries";
      EXPECT_EQ(committed.keys, model.table_statistics({1, 0}).keys);
      undone += process.undone() ? 1 : 0;
      // The restarted ps continues: its rows suffice, and every key has its own row.
      for (std::int64_t i = equal_to; i < kSequenceLength; ++i) {
        const SequenceEntry entry = sequence_entry(i);
        process.push(entry.keys, entry.gradient, entry.op, true);
      }
      const auto now = process.store().table_statistics({1, 0});
      EXPECT_EQ(now.refused, 0U);
      EXPECT_EQ(process.store().list_keys({1, 0, 0, 1'000'000}).keys.size(), now.keys);
    }
  }
  EXPECT_GT(undone, 0) << "no kill was in the middle of an entry";
}

}  // namespace
}  // namespace capstan::ps
