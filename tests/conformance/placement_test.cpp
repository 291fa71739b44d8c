// placement_test.cpp -- TensorFlow's cases of scopes, placement, partitioners and initial values.
#include <numeric>

#include "conformance/cluster_fixture.hpp"

namespace capstan {
namespace {

class Placement_ : public ClusterFixture {};

// A2.1, B83: same.
TEST_P(Placement_, ScopePlacesVariablesRoundRobinAndOthersAreLocal) {
  start();
  const Variable<float> v1("v1", Shape{}, initializers::constant(1));
  EXPECT_TRUE(v1.on_coordinator());
  const auto scope = strategy().scope();
  for (int i = 0; i < 5; ++i) {
    const Variable<float> v("in scope " + std::to_string(i), Shape{}, initializers::constant(2.0 + i));
    EXPECT_FALSE(v.on_coordinator());
    EXPECT_EQ(ps_of_shards(v), std::vector<int>{i % ps()});
    EXPECT_EQ(v.read(), Array<float>::scalar(2.0F + static_cast<float>(i)));
  }
  EXPECT_EQ(v1.read(), Array<float>::scalar(1));
}

// A2.2: same.
TEST_P(Placement_, EveryShardAdvancesTheRoundRobin) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  const Variable<float> a("a", Shape{5, 2});
  const Variable<float> whole("whole", Shape{});
  const Variable<float> b("b", Shape{6, 1});
  EXPECT_EQ(ps_of_shards(a), (std::vector<int>{0, 1 % ps()}));
  EXPECT_EQ(ps_of_shards(whole), (std::vector<int>{2 % ps()}));
  EXPECT_EQ(ps_of_shards(b), (std::vector<int>{3 % ps(), 4 % ps()}));
}

// A2.2: better: Placement::by_bytes places a shard on the ps with the fewest bytes.
TEST_P(Placement_, ByBytesFillsThePsEvenly) {
  start({.variable_partitioner = {}, .placement = Placement::by_bytes});
  const auto scope = strategy().scope();
  const Variable<float> big("big", Shape{1000, 10});
  for (int i = 0; i < 6; ++i) {
    const Variable<float> small("small " + std::to_string(i), Shape{100, 10});
    EXPECT_TRUE(ps() == 1 || ps_of_shards(small) != ps_of_shards(big));
  }
  // Slots count: with Adam's two slots, this variable takes three times the bytes of its values.
  const Variable<float> adam("adam", Shape{300, 10}, {}, {.optimizer = optimizers::Adam{}});
  const auto loads = strategy().loads();
  ASSERT_EQ(loads.size(), static_cast<std::size_t>(ps()));
  std::uint64_t bytes = 0, shards = 0;
  for (const PsLoad& load : loads) {
    bytes += load.bytes;
    shards += load.shards;
  }
  EXPECT_EQ(bytes, 40'000U + 6 * 4'000 + 36'000);
  EXPECT_EQ(shards, 8U);
  if (ps() == 3) {
    EXPECT_EQ(loads[0].bytes, 40'000U);
    EXPECT_EQ(std::max(loads[1].bytes, loads[2].bytes), 12'000U + 36'000);
  }
}

// A2.2: better: a report lists what each ps holds and how much was sent to it.
TEST_P(Placement_, ReportCountsPushesAndBytes) {
  start();
  const auto scope = strategy().scope();
  const Variable<float> v("v", Shape{10, 4});
  v.push(Ids{1, 2}, std::vector<float>(8, 1));
  v.flush();
  const PsLoad load = strategy().loads()[0];
  EXPECT_EQ(load.pushes, 1U);
  EXPECT_EQ(load.rows_pushed, 2U);
  EXPECT_EQ(load.bytes_pushed, 32U);
  EXPECT_EQ(load.bytes, 160U);
  const std::string table = strategy().describe_loads();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), ps() + 1) << table;
}

// S85: better: checkpoints, loads and errors name shards as well.
TEST_P(Placement_, ShardsAreNamedByTheirNumber) {
  start({.variable_partitioner = FixedShardsPartitioner{3}});
  const auto scope = strategy().scope();
  const Variable<float> w("w", Shape{5, 2}), b("b", Shape{1, 2});
  std::vector<std::string> names;
  for (const ShardInfo& shard : w.shards()) names.push_back(shard.name);
  EXPECT_EQ(names, (std::vector<std::string>{"w/part_0", "w/part_1", "w/part_2"}));
  EXPECT_EQ(b.shards()[0].name, "b");
  std::vector<std::string> of_all_ps;
  for (const PsLoad& load : strategy().loads()) {
    EXPECT_EQ(load.shard_names.size(), load.shards);
    of_all_ps.insert(of_all_ps.end(), load.shard_names.begin(), load.shard_names.end());
  }
  std::sort(of_all_ps.begin(), of_all_ps.end());
  EXPECT_EQ(of_all_ps, (std::vector<std::string>{"b", "w/part_0", "w/part_1", "w/part_2"}));
  EXPECT_NE(strategy().describe_loads().find("w/part_2"), std::string::npos);
}

// A2.2: better: also counts rows of lookups and pulls that it sent to ranks that do not map its memory.
TEST(Loads, CountSentRows) {
  const RankThreads ranks({.ranks = 4, .flags = {{"ps", "2"}, {"window", "am"}}});
  ParameterServerStrategy strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy.scope();
  const Variable<float> v("v", Shape{100, 3});
  (void)v.lookup(Ids{0, 99, 0, 1});
  (void)v.lookup(Ids{98, 97}, ReadMode::consistent);
  (void)v.pull();
  std::vector<float> some(20 * 3);
  v.pull(40, some);
  const auto loads = strategy.loads();
  EXPECT_EQ(loads[0].rows_sent, 3u + 50u + 10u);
  EXPECT_EQ(loads[1].rows_sent, 1u + 2u + 50u + 10u);
}

// A2.4, B96: same.
TEST_P(Placement_, ColocatedVariableHasOneShardAndDoesNotAdvanceTheRoundRobin) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  const Variable<float> v1("v1", Array<float>({2, 1}, {1, 2}));
  ASSERT_EQ(ps_of_shards(v1), (std::vector<int>{0, 1 % ps()}));
  {
    const auto beside = strategy().colocate_vars_with(v1, 1);
    const Variable<float> v2("v2", Array<float>({2, 1}, {4, 5}));
    EXPECT_EQ(ps_of_shards(v2), std::vector<int>{1 % ps()});
    EXPECT_EQ(v2.pull(), (std::vector<float>{4, 5}));
  }
  const Variable<float> v3("v3", Shape{2});
  EXPECT_EQ(ps_of_shards(v3), (std::vector<int>{2 % ps(), 3 % ps()}));
  EXPECT_TRUE(strategy().variable_created_in_scope(v3));
  expect_error_naming(Code::out_of_range, {"colocate_vars_with", "\"v1\"", "0 to 1", "2"},
                      [&] { const auto none = strategy().colocate_vars_with(v1, 2); });
}

// A2.4: better: a variable of another strategy is rejected by name.
TEST_P(Placement_, RejectsColocationWithAVariableOutsideOfTheScope) {
  start();
  const Variable<float> local("local", Shape{1});
  expect_error_naming(Code::invalid_argument, {"colocate_vars_with", "\"local\""},
                      [&] { const auto none = strategy().colocate_vars_with(local); });
}

// A2.7, B89: same.
TEST_P(Placement_, VariableHasOneShardWithoutAPartitioner) {
  start();
  const auto scope = strategy().scope();
  EXPECT_EQ(Variable<float>("v", Shape{100, 3}).shards().size(), 1U);
}

// A2.7, B99: same.
TEST_P(Placement_, ChecksTheResultOfAPartitioner) {
  for (const std::vector<std::int64_t>& wrong :
       {std::vector<std::int64_t>{}, {0, 1, 1}, {2, 2, 1}, {-1, 1, 1}, {2, 1, 1, 2}}) {
    start({.variable_partitioner = [wrong](auto, DType) { return Partitions(wrong); }});
    const auto scope = strategy().scope();
    std::string list;
    for (const auto n : wrong) list += (list.empty() ? "" : ", ") + std::to_string(n);
    expect_error(
        Code::invalid_argument,
        "variable_partitioner returned [" + list +
            "] for variable \"v\" of shape (4, 2, 2); expected a number of shards for each axis, 1 or more "
            "for the first and 1 for the others",
        [] {
          Variable<float>("v", Shape{4, 2, 2});
        });
  }
  start({.variable_partitioner = [](auto, DType) { return Partitions({3, 1}); }});
  const auto scope = strategy().scope();
  EXPECT_EQ(sizes(Variable<float>("v", Shape{2, 2})),
            (std::vector<std::uint64_t>{1, 1}));                      // at most one per row
  EXPECT_EQ(Variable<float>("scalar", Shape{}).shards().size(), 1U);  // rank 0: one shard
}

// A2.8, B118: same.
TEST_P(Placement_, DividesRowsByTheDivRule) {
  struct Case {
    std::int64_t rows, shards;
    std::vector<std::uint64_t> sizes;
  };
  for (const Case& c : {Case{10, 4, {3, 3, 2, 2}}, Case{13, 5, {3, 3, 3, 2, 2}}, Case{5, 2, {3, 2}},
                        Case{32, 3, {11, 11, 10}}, Case{6, 6, {1, 1, 1, 1, 1, 1}}}) {
    start({.variable_partitioner = FixedShardsPartitioner{c.shards}});
    const auto scope = strategy().scope();
    const Variable<float> v("v", Shape{c.rows});
    EXPECT_EQ(sizes(v), c.sizes);
    std::uint64_t first = 0;
    for (const ShardInfo& shard : v.shards()) {
      EXPECT_EQ(shard.first_row, first);
      first += shard.rows;
    }
  }
}

// B90: same.
TEST_P(Placement_, DividesAnArrayIntoShards) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  std::vector<float> numbers(10);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  const Variable<float> v1("v1", Array<float>({5, 2}, numbers));
  EXPECT_EQ(sizes(v1), (std::vector<std::uint64_t>{3, 2}));
  EXPECT_EQ(ps_of_shards(v1), (std::vector<int>{0, 1 % ps()}));
  EXPECT_EQ(v1.lookup(Ids{0, 1, 2}).values, (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(v1.lookup(Ids{3, 4}).values, (std::vector<float>{6, 7, 8, 9}));
  const Variable<float> v2("v2",
                           Array<float>({6, 1}, std::vector<float>(numbers.begin(), numbers.begin() + 6)));
  EXPECT_EQ(sizes(v2), (std::vector<std::uint64_t>{3, 3}));
}

// A2.6, B98, B100: same.
TEST_P(Placement_, InfersShapeAndDtypeFromTheValue) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  const auto make = [] { return Array<double>({4}, {0, 1, 2, 3}); };
  int calls = 0;
  const auto counted = [&] {
    ++calls;
    return make();
  };
  for (const Variable<double>& v :
       {Variable<double>("array", make()), Variable<double>("function", make),
        Variable<double>("both", Shape{4}, make), Variable<double>("once", counted)}) {
    EXPECT_EQ(v.shape(), Shape{4});
    EXPECT_EQ(v.lookup(Ids{0, 1}).values, (std::vector<double>{0, 1}));
    EXPECT_EQ(v.lookup(Ids{2, 3}).values, (std::vector<double>{2, 3}));
  }
  EXPECT_EQ(calls, 1);
  const Variable<float> identity("identity", Shape{2, 2}, initializers::identity());
  EXPECT_EQ(identity.lookup(Ids{0}).values, (std::vector<float>{1, 0}));
  EXPECT_EQ(identity.lookup(Ids{1}).values, (std::vector<float>{0, 1}));
}

// A2.6: better: an initial value that does not fit is rejected with both shapes.
TEST_P(Placement_, RejectsAValueOfAnotherShape) {
  start();
  const auto scope = strategy().scope();
  expect_error_naming(Code::invalid_argument, {"\"v\"", "(2, 3)", "(3, 2)"}, [] {
    Variable<float>("v", Shape{2, 3}, Array<float>(Shape{3, 2}));
  });
  expect_error_naming(Code::invalid_argument, {"\"v\"", "shape"},
                      [] { Variable<float>("v", initializers::zeros()); });
  expect_error_naming(Code::invalid_argument, {"\"v\"", "rank 1", "rank 2"},
                      [] { Variable<float>("v", Shape{4}, initializers::identity()); });
  expect_error_naming(Code::invalid_argument, {"\"v\"", "int32"}, [] {
    Variable<std::int32_t>("v", Shape{4, 4}, initializers::orthogonal());
  });
  EXPECT_NO_THROW(Variable<float>("v", Shape{2, 3}));  // none of these has reserved the name
}

void fill_with_index(const Partition& part, std::span<float> out) {
  const auto first = static_cast<std::size_t>(part.partition_offset[0] * part.shape[1]);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(first + i);
  if (part.shape[1] == 7) throw Error(Code::data_loss, "no such file");
}

// A2.6: better: a partition-aware function runs on the ps that owns the shard.
TEST_P(Placement_, FunctionFillsEachShardOnItsPs) {
  start({.variable_partitioner = FixedShardsPartitioner{3}});
  const auto scope = strategy().scope();
  const Variable<float> v("v", Shape{5, 3}, from_partitions<float, fill_with_index>());
  std::vector<float> expected(15);
  std::iota(expected.begin(), expected.end(), 0.0F);
  EXPECT_EQ(v.pull(), expected);
  expect_error(Code::data_loss, "no such file", [] {
    Variable<float>("w", Shape{5, 7}, from_partitions<float, fill_with_index>());
  });
}

// A2.6: better: random values do not depend on the shards.
TEST_P(Placement_, RandomValuesDoNotDependOnTheShards) {
  const std::vector<Initializer> all{initializers::uniform(-1, 1, 3), initializers::normal(0, 1, 3),
                                     initializers::truncated_normal(0, 1, 3), initializers::orthogonal(1, 3)};
  std::vector<std::vector<double>> expected;
  for (const std::int64_t shards : {1, 2, 5}) {
    start({.variable_partitioner = FixedShardsPartitioner{shards}});
    const auto scope = strategy().scope();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto values = Variable<double>("v" + std::to_string(i), Shape{11, 3}, all[i]).pull();
      if (expected.size() == i) expected.push_back(values);
      EXPECT_EQ(values, expected[i]) << i << ", " << shards << " shards";
    }
  }
}

// A2.15: same.
TEST_P(Placement_, AggregationAndSynchronizationAreKept) {
  start();
  const auto scope = strategy().scope();
  const Variable<float> v("v", Shape{1}, {},
                          {.trainable = false,
                           .aggregation = VariableAggregation::mean,
                           .synchronization = VariableSynchronization::on_read});
  const Variable<float> w("w", Shape{1});
  EXPECT_FALSE(v.trainable());
  EXPECT_EQ(v.aggregation(), VariableAggregation::mean);
  EXPECT_EQ(v.synchronization(), VariableSynchronization::on_read);
  EXPECT_EQ(strategy().variables(), (std::vector<std::string>{"v", "w"}));
  EXPECT_EQ(strategy().variables(/*trainable_only=*/true), std::vector<std::string>{"w"});
}

INSTANTIATE_TEST_SUITE_P(Clusters, Placement_, testing::Values(1, 2, 3), ps_name);

}  // namespace
}  // namespace capstan
