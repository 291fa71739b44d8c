// table_client_test.cpp -- reads and pushes of dynamic tables on every path, compared with a map.
// Tests: src/client/mapped_read.hpp
#include "client/table_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "client/client_fixture.hpp"

namespace capstan::client {
namespace {

using Keys = std::vector<std::int64_t>;
using protocol::RowOp;

constexpr std::uint64_t kWidth = 5;
constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

RankThreadsOptions ranks_for_tables() {
  return {.ranks = 4, .flags = {{"ps", "2"}, {"push-ring-bytes", "64KiB"}}};
}

class TableClientTest : public ClientFixture {
 protected:
  protocol::VariableDescriptor table(const std::string& name, const TableOptions& options = {},
                                     const Initializer& initial = {}) {
    return strategy_->variable_creator()
        .create_table(name, DType::float32, kWidth, initial, options)
        ->descriptor;
  }
  static TableOptions counting(MissingKeys missing = MissingKeys::zeros) {
    return {.optimizer = optimizers::SGD{.learning_rate = -1}, .missing = missing, .max_keys = 100'000};
  }
  static std::vector<float> rows_of(const Keys& keys, float value) {
    return std::vector<float>(keys.size() * kWidth, value);
  }
  void change(const protocol::VariableDescriptor& t, RowOp op, const Keys& keys, float value = 0) {
    client().scatter(t, op, keys, has_values(op) ? rows_of(keys, value).data() : nullptr);
  }
};

TEST_P(TableClientTest, RandomChangesEqualThoseOfAMap) {
  start(ranks_for_tables());
  const auto t = table("t", counting());
  std::map<std::int64_t, float> plain;
  std::mt19937_64 random(7);
  const auto random_keys = [&] {
    Keys keys(random() % 400);
    for (auto& key : keys) key = static_cast<std::int64_t>((random() % 3000) * 0x0123'4567'89ab'cdefU);
    return keys;
  };
  for (int round = 0; round < 80; ++round) {
    const Keys keys = random_keys();
    switch (random() % 4) {
      case 0:
      case 1:
        push(t, keys, rows_of(keys, static_cast<float>(round)));
        for (const auto key : keys) plain[key] += static_cast<float>(round);
        client().flush();
        break;
      case 2:
        change(t, RowOp::set, keys, static_cast<float>(-round));
        for (const auto key : keys) plain[key] = static_cast<float>(-round);
        break;
      default:
        change(t, RowOp::erase, keys);
        for (const auto key : keys) plain.erase(key);
    }
    const Keys looked_up = random_keys();
    std::vector<float> expected;
    std::vector<std::uint8_t> exist;
    for (const auto key : looked_up) {
      const auto found = plain.find(key);
      exist.push_back(found != plain.end() ? 1 : 0);
      expected.insert(expected.end(), kWidth, found == plain.end() ? 0 : found->second);
    }
    ASSERT_EQ(lookup<float>(t, looked_up), expected) << "round " << round;
    std::vector<float> consistent(expected.size());
    client().lookup(t, looked_up, consistent.data(), ReadMode::consistent);
    ASSERT_EQ(consistent, expected);
    ASSERT_EQ(client().tables().contains(t, looked_up), exist);
  }
  std::uint64_t keys = 0;
  for (const auto& shard : client().tables().statistics(t)) keys += shard.keys;
  EXPECT_EQ(keys, plain.size());
  EXPECT_GT(plain.size(), 500U);
}

TEST_P(TableClientTest, MissingKeysFollowThePolicyOfTheTable) {
  start(ranks_for_tables());
  const Initializer initial = initializers::uniform(1, 2, 9);
  const auto zeros = table("zeros", counting(), initial);
  const auto defaults = table("default", counting(MissingKeys::default_row), initial);
  const auto initials = table("initial", counting(MissingKeys::initial), initial);
  const auto errors = table("error", counting(MissingKeys::error), initial);
  const Keys keys{4, kLowest, -1, 17};
  EXPECT_EQ(lookup<float>(zeros, keys), rows_of(keys, 0));
  EXPECT_EQ(lookup<float>(defaults, keys), rows_of(keys, 0));
  const std::vector<float> row = rows_of({0}, 3);
  client().tables().set_default_row(defaults, std::as_bytes(std::span(row)).data());
  EXPECT_EQ(lookup<float>(defaults, keys), rows_of(keys, 3));
  const auto first = lookup<float>(initials, keys);
  EXPECT_GE(*std::min_element(first.begin(), first.end()), 1);
  change(initials, RowOp::insert, {-1});
  EXPECT_EQ(lookup<float>(initials, keys), first);
  EXPECT_EQ(client().tables().contains(initials, keys), (std::vector<std::uint8_t>{0, 0, 1, 0}));
  change(errors, RowOp::insert, {4, -1, 17});
  expect_error_naming(Code::not_found, {"\"error\"", std::to_string(kLowest)},
                      [&] { (void)lookup<float>(errors, keys); });
  change(errors, RowOp::insert, {kLowest});
  EXPECT_EQ(lookup<float>(errors, keys), first);
}

TEST_P(TableClientTest, LookupsThatInsertReturnTheRowsThatTheyAdd) {
  start(ranks_for_tables());
  const auto t = table("t", counting(), initializers::normal(0, 1, 3));
  const Keys keys{8, 3, 8, 1'000'000'000'000};
  std::vector<float> first(keys.size() * kWidth);
  client().lookup_or_insert(t, keys, first.data());
  client().flush();
  EXPECT_EQ(client().tables().contains(t, keys), (std::vector<std::uint8_t>{1, 1, 1, 1}));
  EXPECT_EQ(lookup<float>(t, keys), first);
  push(t, {3}, rows_of({3}, 1));
  client().flush();
  std::vector<float> second(first.size());
  client().lookup_or_insert(t, keys, second.data());
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(second[i], first[i] + (i / kWidth == 1 ? 1.F : 0.F)) << i;
}

TEST_P(TableClientTest, LargePushesAndLookupsAreComplete) {
  start(ranks_for_tables());
  const auto t = table("t", counting());
  Keys keys(20'000);  // several entries of a ring, several pieces of a read
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int64_t>(i * i);
  std::vector<float> gradient(keys.size() * kWidth);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 1000);
  push(t, keys, gradient);
  client().flush();
  EXPECT_EQ(lookup<float>(t, keys), gradient);
}

TEST_P(TableClientTest, ErasedKeyStartsWithNewSlots) {
  start(ranks_for_tables());
  const auto t = table("t", {.optimizer = optimizers::Adagrad{.learning_rate = 1}, .max_keys = 10});
  push(t, {1}, rows_of({1}, 2));
  client().flush();
  const auto once = lookup<float>(t, {1});
  change(t, RowOp::erase, {1});
  EXPECT_EQ(lookup<float>(t, {1}), rows_of({1}, 0));
  push(t, {1}, rows_of({1}, 2));
  client().flush();
  EXPECT_EQ(lookup<float>(t, {1}), once);
}

TEST_P(TableClientTest, KeysBeyondTheCapacityAreRefusedAndCounted) {
  start(ranks_for_tables());
  TableOptions options = counting();
  options.max_keys = 100;
  const auto t = table("t", options);
  Keys keys(1000);
  std::iota(keys.begin(), keys.end(), 0);
  push(t, keys, rows_of(keys, 1));
  client().flush();
  std::uint64_t stored = 0;
  std::uint64_t refused = 0;
  for (const auto& shard : client().tables().statistics(t)) {
    stored += shard.keys;
    refused += shard.refused;
  }
  EXPECT_GE(stored, 100U);
  EXPECT_EQ(stored + refused, 1000U);
  const auto rows = lookup<float>(t, keys);
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(rows.begin(), rows.end(), 1.F)), stored * kWidth);
}

TEST_P(TableClientTest, ListsAllKeysOnce) {
  start(ranks_for_tables());
  const auto t = table("t", counting());
  Keys keys(5000);
  std::iota(keys.begin(), keys.end(), -2500);
  change(t, RowOp::insert, keys);
  std::set<std::int64_t> listed;
  std::size_t count = 0;
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    for (std::uint64_t row = 0, end = 1; row < end; row += 100) {
      const auto some = client().tables().list(t, shard, row, 100);
      end = some.rows_end;
      count += some.keys.size();
      listed.insert(some.keys.begin(), some.keys.end());
    }
  }
  EXPECT_EQ(count, keys.size());
  EXPECT_EQ(listed, std::set(keys.begin(), keys.end()));
}

INSTANTIATE_TEST_SUITE_P(Paths, TableClientTest,
                         testing::Values(PathParam{Network::loop, "auto"}, PathParam{Network::loop, "rma"},
                                         PathParam{Network::loop, "am"}, PathParam{Network::ucx, "auto"},
                                         PathParam{Network::ucx, "am"}),
                         path_name);

}  // namespace
}  // namespace capstan::client
