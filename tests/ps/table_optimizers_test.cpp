// table_optimizers_test.cpp -- every optimizer updates the rows of a dynamic table as those of a variable.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "protocol/descriptor.hpp"
#include "ps/all_optimizers.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "ps/shard_contents.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint32_t kTable = 1, kVariable = 2;
constexpr std::uint64_t kDim = 5;
constexpr std::int64_t kPushedKeys = 60;
constexpr std::int64_t kErasedKey = 3, kLaterKey = kPushedKeys;  // the second is added in place of the first
constexpr std::uint64_t kRowsOfVariable = kPushedKeys + 1;

/// A table, and a variable whose row k has the same initial values as key k.
template <class T>
class TableAndVariable {
 public:
  explicit TableAndVariable(const Optimizer& optimizer) {
    protocol::CreateShard request;
    request.dtype = dtype_of<T>;
    request.optimizer = optimizer;
    request.initializer = initializers::uniform(-1, 1, 5);
    request.variable = kVariable;
    request.name = "variable";
    request.shape = {kRowsOfVariable, kDim};
    request.rows = kRowsOfVariable;
    store_.create(request);
    request.variable = kTable;
    request.name = "table";
    request.shape = {1000, kDim};
    request.rows = 1000;
    request.table = true;
    store_.create(request);
  }
  /// Pushes a gradient to the same rows of both.
  void push(const std::vector<std::int64_t>& keys, const std::vector<T>& gradient) {
    apply_entry(store_, keyed_entry(kTable, keys, gradient));
    apply_entry(store_, push_entry(kVariable, 0, std::vector<std::uint32_t>(keys.begin(), keys.end()), 0,
                                   kDim, gradient));
  }
  void change(std::int64_t key, protocol::RowOp op) {
    apply_entry(store_, keyed_entry<T>(kTable, {key}, {}, op));
  }
  std::unordered_map<std::string, ShardContents> contents() { return shard_contents(store_); }

 private:
  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  Store store_{*fabric_, 1 << 20, 0};
};

template <class T>
void expect_same_updates(const Optimizer& optimizer) {
  TableAndVariable<T> both(optimizer);
  std::mt19937 random(7);
  std::vector<std::int64_t> all(kPushedKeys);
  std::iota(all.begin(), all.end(), 0);
  for (int round = 0; round < 8; ++round) {
    std::shuffle(all.begin(), all.end(), random);
    std::vector<std::int64_t> keys = all;
    if (round < 7) keys.resize(1 + random() % kPushedKeys);
    keys.insert(keys.end(), keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 3));
    std::vector<T> gradient(keys.size() * kDim);
    for (T& g : gradient) g = static_cast<T>(static_cast<float>(random() % 1000) / 100 - 5);
    both.push(keys, gradient);
  }
  both.change(kErasedKey, protocol::RowOp::erase);
  both.change(kLaterKey, protocol::RowOp::insert);

  const auto contents = both.contents();
  const ShardContents& variable = contents.at("variable");
  const std::size_t arrays = 1 + protocol::slots_of(optimizer.kind).size();
  ASSERT_EQ(variable.arrays.size(), arrays);
  const auto rows = rows_by_key(contents.at("table/part_0"));
  EXPECT_EQ(rows.size(), kPushedKeys);
  for (std::int64_t key = 0; key < static_cast<std::int64_t>(kRowsOfVariable); ++key) {
    if (key == kErasedKey) continue;
    EXPECT_EQ(rows.at(key), variable.row(static_cast<std::uint64_t>(key), arrays)) << "key " << key;
  }
}

class TableOptimizersTest : public testing::TestWithParam<Optimizer> {};

TEST_P(TableOptimizersTest, RowsAndSlotsEqualThoseOfAVariable) {
  SCOPED_TRACE(protocol::describe(GetParam()));
  expect_same_updates<float>(GetParam());
  expect_same_updates<double>(GetParam());
}

// The steps of the shard determine this rate, so both must also count the same steps.
INSTANTIATE_TEST_SUITE_P(Optimizers, TableOptimizersTest,
                         testing::ValuesIn(all_optimizers(schedules::PolynomialDecay{
                             .initial_learning_rate = 0.5, .decay_steps = 6, .end_learning_rate = 0.125})),
                         [](const auto& optimizer) {
                           return std::string(to_string(optimizer.param.kind)) +
                                  (optimizer.param.nesterov ? "_nesterov" : "");
                         });

TEST(AllOptimizers, HasEveryKind) {
  const std::vector<Optimizer> all = all_optimizers(0.1);
  for (int number = 1; number <= 255; ++number) {
    const auto kind = static_cast<OptimizerKind>(number);
    if (to_string(kind) == to_string(OptimizerKind{})) continue;  // no such kind
    EXPECT_TRUE(std::ranges::any_of(all, [&](const Optimizer& o) { return o.kind == kind; })) << number;
  }
}

}  // namespace
}  // namespace capstan::ps
