// variable_cases_test.cpp -- edge cases of sizes, ids and numbers for every dtype, compared with plain
// arrays.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "capstan/embedding.hpp"
#include "conformance/cluster_fixture.hpp"

namespace capstan {
namespace {

template <class T>
using Values = std::vector<Element<T>>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
double number_of(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}
template <class T>
Element<T> element_of(double value) {
  if constexpr (std::is_arithmetic_v<Element<T>>) {
    return static_cast<Element<T>>(value);
  } else {
    return T(static_cast<float>(value));
  }
}
template <class T>
constexpr bool kIsInteger = std::is_integral_v<T>;

class VariableCases : public ClusterFixture {
 protected:
  void start_with(std::int64_t shards) { start({.variable_partitioner = FixedShardsPartitioner{shards}}); }
  /// Calls f(std::type_identity<T>()) for every dtype that has arithmetic.
  template <class F>
  static void for_numbers(const F& f) {
    f(std::type_identity<float>());
    f(std::type_identity<double>());
    f(std::type_identity<float16>());
    f(std::type_identity<bfloat16>());
    f(std::type_identity<std::int32_t>());
    f(std::type_identity<std::int64_t>());
  }
  template <class F>
  static void for_dtypes(const F& f) {
    for_numbers(f);
    f(std::type_identity<bool>());
  }
};
INSTANTIATE_TEST_SUITE_P(Clusters, VariableCases, testing::Values(1, 2, 3), ps_name);

// A2.6: better: uniform numbers lie in [low, high) in every dtype, also if rounding would reach `high`, and
// all integers are equally likely.
TEST_P(VariableCases, UniformNumbersStayBelowTheirBound) {
  start_with(3);
  const auto scope = strategy().scope();
  for_numbers([]<class T>(std::type_identity<T>) {
    const Variable<T> v(std::string(to_string(dtype_of<T>)), Shape{9000}, initializers::uniform(0, 3, 1));
    std::map<std::int64_t, int> counts;
    for (const T value : v.pull()) {
      EXPECT_GE(number_of(value), 0);
      EXPECT_LT(number_of(value), 3) << v.name();
      ++counts[static_cast<std::int64_t>(number_of(value))];
    }
    for (const std::int64_t whole : {0, 1, 2}) EXPECT_NEAR(counts[whole], 3000, 250) << v.name();
    const Variable<T> negative(v.name() + " negative", Shape{1000}, initializers::uniform(-7, -2, 1));
    for (const T value : negative.pull()) {
      EXPECT_GE(number_of(value), -7);
      EXPECT_LT(number_of(value), -2) << v.name();
    }
  });
}

// A2.6: same.
TEST_P(VariableCases, RejectsInitializersThatADtypeCannotRepresent) {
  start_with(2);
  const auto scope = strategy().scope();
  const auto refuses = []<class T>(std::type_identity<T>, const Initializer& initializer,
                                   const std::string& why) {
    const std::string dtype(to_string(dtype_of<T>));
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { Variable<T>("v", Shape{4}, initializer); }),
                testing::HasSubstr("variable \"v\", " + dtype + ": found " + why));
  };
  const std::type_identity<std::int32_t> int32;
  const std::type_identity<float> float32;
  const std::string from_to = ", expected an integer from -2147483648 to 2147483647";
  refuses(int32, initializers::constant(1e10), "constant(10000000000)" + from_to);
  refuses(int32, initializers::constant(kInfinity), "constant(inf)" + from_to);
  refuses(int32, initializers::constant(kNaN), "constant(nan)" + from_to);
  refuses(int32, initializers::constant(0.5), "constant(0.5)" + from_to);
  EXPECT_THROW(Variable<std::int64_t>("v", Shape{4}, initializers::constant(0x1p63)), Error);
  refuses(int32, initializers::uniform(0.25, 0.75), "uniform(0.25, 0.75)");
  EXPECT_THROW(Variable<std::int32_t>("v", Shape{4}, initializers::uniform(0, 1e10)), Error);
  refuses(float32, initializers::uniform(2, 1), "uniform(2, 1)");
  EXPECT_THROW(Variable<float>("v", Shape{4}, initializers::uniform(0, kInfinity)), Error);
  refuses(float32, initializers::normal(0, -1), "a mean of 0 and a stddev of -1");
  refuses(float32, initializers::truncated_normal(0, kNaN), "a mean of 0 and a stddev of nan");
  EXPECT_EQ(Variable<float>("same", Shape{2}, initializers::uniform(1, 1)).pull(), Values<float>(2, 1));
  EXPECT_EQ(Variable<std::int64_t>("least", Shape{1}, initializers::constant(-0x1p63)).pull()[0],
            std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(std::isnan(Variable<float>("nan", Shape{4}, initializers::constant(kNaN)).pull()[3]));
  EXPECT_EQ(Variable<float16>("inf", Shape{1}, initializers::constant(1e9)).pull()[0], float16(1e9F));
}

// A3.5: better: integers wrap around, and no division terminates the ps.
TEST_P(VariableCases, IntegersWrapAround) {
  start_with(2);
  const auto scope = strategy().scope();
  const auto check = []<class T>(std::type_identity<T>) {
    constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
    const Variable<T> v(std::string(to_string(dtype_of<T>)),
                        Array<T>::vector({kLeast, kMost, kMost, kLeast}));
    v.scatter_div(Ids{0, 3}, Values<T>{-1, -1});
    EXPECT_EQ(v.pull(), (Values<T>{kLeast, kMost, kMost, kLeast}));
    v.scatter_add(Ids{1}, Values<T>{1});
    v.scatter_sub(Ids{3}, Values<T>{1});
    v.scatter_mul(Ids{2}, Values<T>{2});
    EXPECT_EQ(v.pull(), (Values<T>{kLeast, kLeast, -2, kMost}));
    v.push(Ids{3}, Values<T>{-1});
    v.flush();
    EXPECT_EQ(v.pull()[3], kLeast);
    v.scatter_max(Ids{3, 0}, Values<T>{kMost, kLeast});
    v.scatter_min(Ids{1, 2}, Values<T>{kMost, -3});
    EXPECT_EQ(v.pull(), (Values<T>{kLeast, kLeast, -3, kMost}));
  };
  check(std::type_identity<std::int32_t>());
  check(std::type_identity<std::int64_t>());
}

// A3.5: same.
TEST_P(VariableCases, ScatterOfNoRowsAllRowsAndOneRowRepeatedly) {
  for (const std::int64_t shards : {1, 2, 5, 40}) {
    start_with(shards);
    const auto scope = strategy().scope();
    for_numbers([]<class T>(std::type_identity<T>) {
      using V = Variable<T>;
      const V v(std::string(to_string(dtype_of<T>)), Shape{7, 1, 2}, initializers::constant(3));
      std::vector<double> expected(14, 3);
      std::mt19937 random(7);
      using Call = const V& (V::*)(ConstSpan<std::int64_t>, ConstSpan<T>) const;
      struct Operation {
        Call call;
        std::function<double(double, double)> rule;
      };
      const auto quotient = [](double w, double x) { return kIsInteger<T> ? std::trunc(w / x) : w / x; };
      const std::vector<Operation> operations{
          {&V::scatter_add, std::plus<>()},
          {&V::scatter_sub, std::minus<>()},
          {&V::scatter_mul, std::multiplies<>()},
          {&V::scatter_div, quotient},
          {&V::scatter_min, [](double w, double x) { return std::min(w, x); }},
          {&V::scatter_max, [](double w, double x) { return std::max(w, x); }},
          {&V::scatter_update, [](double, double x) { return x; }},
          {&V::batch_scatter_update, [](double, double x) { return x; }}};
      for (const Ids& ids : {Ids{}, Ids{6}, Ids{6, 5, 4, 3, 2, 1, 0}, Ids(9, 3), Ids{0, 6, 0, 6, 1}}) {
        for (const Operation& operation : operations) {
          Values<T> values(ids.size() * 2);
          for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = element_of<T>(std::vector<double>{1, 2, -2, -1}[random() % 4]);
            double& w = expected[static_cast<std::size_t>(ids[i / 2]) * 2 + i % 2];
            w = number_of(element_of<T>(operation.rule(w, number_of(values[i]))));
          }
          (v.*operation.call)(ids, values);
          const auto now = v.pull();
          for (std::size_t i = 0; i < now.size(); ++i)
            ASSERT_EQ(number_of(now[i]), expected[i]) << v.name() << i;
        }
        v.assign(Values<T>(14, element_of<T>(3)));
        std::fill(expected.begin(), expected.end(), 3);
      }
    });
  }
}

// A3.5: same.
TEST_P(VariableCases, RejectsScatterOnAScalar) {
  start_with(2);
  const auto scope = strategy().scope();
  const Variable<float> scalar("scalar", Shape{}, initializers::constant(2));
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { scalar.scatter_add(Ids{0}, Values<float>{1}); },
           [&] { scalar.scatter_update(Ids{0}, Values<float>{1}); },
           [&] { scalar.batch_scatter_update(Ids{0}, Values<float>{1}); },
           [&] { sparse_read(scalar, Ids{0}); }, [&] { embedding_lookup(scalar, Ids{0}); }}) {
    expect_error_naming(Code::invalid_argument, {"\"scalar\""}, call);
  }
  EXPECT_EQ(scalar.read(), Array<float>::scalar(2));
}

// A3.5: same.
TEST_P(VariableCases, MinAndMaxWithNan) {
  start_with(2);
  const auto scope = strategy().scope();
  const auto nan = static_cast<float>(kNaN);
  const Variable<float> v("v", Array<float>::vector({nan, 1, nan, 1}));
  v.scatter_min(Ids{0, 1}, Values<float>{0, nan});
  v.scatter_max(Ids{2, 3}, Values<float>{0, nan});
  const auto now = v.pull();  // a NaN element stays NaN; a NaN argument is ignored
  EXPECT_TRUE(std::isnan(now[0]) && std::isnan(now[2]));
  EXPECT_EQ(now[1], 1);
  EXPECT_EQ(now[3], 1);
}

// A2.7: same.
TEST_P(VariableCases, PartitionerResultMayBeLongerThanTheShape) {
  int asked = 0;
  start({.variable_partitioner = [&](std::span<const std::int64_t>, DType) {
    ++asked;
    return Partitions({2, 1, 1});
  }});
  const auto scope = strategy().scope();
  const Variable<float> v("v", Shape{5});
  EXPECT_EQ(sizes(v), (std::vector<std::uint64_t>{3, 2}));
  EXPECT_EQ(asked, 1);
  const Variable<float> scalar("scalar", Shape{});
  const Variable<float> one("one", Shape{1, 4});
  EXPECT_EQ(sizes(one), (std::vector<std::uint64_t>{1}));
  {
    const auto colocation = strategy().colocate_vars_with(v, 1);
    EXPECT_EQ(sizes(Variable<float>("beside", Shape{6})), (std::vector<std::uint64_t>{6}));
  }
  EXPECT_EQ(asked, 2);  // not for scalars nor colocated variables
}

// A2.7: same.
TEST_P(VariableCases, FailedCreationReservesNeitherNameNorPlacement) {
  bool refuse = true;
  start({.variable_partitioner = [&](std::span<const std::int64_t>, DType) -> Partitions {
    if (refuse) throw Error(Code::invalid_argument, "no");
    return 2;
  }});
  const auto scope = strategy().scope();
  expect_error(Code::invalid_argument, "no", [] { Variable<float>("v", Shape{4}); });
  refuse = false;
  EXPECT_THROW(Variable<float>("v", Shape{4}, Array<float>::vector({1})), Error);
  EXPECT_THROW(Variable<float>("v", Shape{4}, initializers::identity()), Error);
  EXPECT_THROW(Variable<float>("v", Shape{4}, []() -> Array<float> { throw Error(Code::data_loss, "gone"); }),
               Error);
  const Variable<float> v("v", Shape{4}, initializers::ones());
  EXPECT_EQ(ps_of_shards(v), (std::vector<int>{0, 1 % ps()}));
  EXPECT_EQ(v.pull(), Values<float>(4, 1));
}

// A3.6, A3.7: same.
TEST_P(VariableCases, ReadsOfAnyRankDtypeAndShards) {
  std::mt19937 random(11);
  for (const std::int64_t shards : {1, 2, 3, 7, 50}) {
    start_with(shards);
    const auto scope = strategy().scope();
    int made = 0;
    for (const Shape& shape : {Shape{1}, Shape{9}, Shape{5, 3}, Shape{4, 1, 2}, Shape{6, 2, 1, 3}}) {
      for_dtypes([&]<class T>(std::type_identity<T>) {
        Array<T> plain(shape);
        for (auto& value : plain.values)
          value = element_of<T>(dtype_of<T> == DType::boolean ? random() % 2 : random() % 100);
        const Variable<T> v("v" + std::to_string(made++), plain);
        EXPECT_EQ(v.read(), plain);
        const std::int64_t rows = shape[0];
        const auto width = static_cast<std::int64_t>(v.width());
        const auto row = [&](std::int64_t r) {
          return Values<T>(plain.values.begin() + r * width, plain.values.begin() + (r + 1) * width);
        };
        const auto rows_of = [&](const std::vector<std::int64_t>& ids) {
          Values<T> all;
          for (const auto id : ids) {
            const auto one = row(id);
            all.insert(all.end(), one.begin(), one.end());
          }
          return all;
        };
        for (int i = 0; i < 4; ++i) {
          Ids ids(random() % 12);
          for (auto& id : ids) id = static_cast<std::int64_t>(random()) % rows;
          Shape expected = shape;
          expected[0] = static_cast<std::int64_t>(ids.size());
          EXPECT_EQ(sparse_read(v, ids), Array<T>(expected, rows_of(ids)));
          EXPECT_EQ(embedding_lookup(v, ids), Array<T>(expected, rows_of(ids)));
        }
        const auto pick = [&] { return static_cast<std::int64_t>(random() % 24) - 12; };
        for (int i = 0; i < 6; ++i) {
          Slice slice;
          if (random() % 4 != 0) slice.start = pick();
          if (random() % 4 != 0) slice.stop = pick();
          slice.step = std::vector<std::int64_t>{1, -1, 2, -2, -3, 5, 100, -100}[random() % 8];
          Ids ids;
          const AxisRange range = AxisRange::resolve(slice, rows);
          for (std::int64_t k = 0; k < range.count; ++k) ids.push_back(range[k]);
          Shape expected = shape;
          expected[0] = range.count;
          EXPECT_EQ(v.at(slice), Array<T>(expected, rows_of(ids)));
          EXPECT_EQ(v.at(slice, ellipsis), Array<T>(expected, rows_of(ids)));
          expected.insert(expected.begin(), 1);
          EXPECT_EQ(v.at(newaxis, slice), Array<T>(expected, rows_of(ids)));
        }
        Array<bool> mask(Shape{rows});
        Ids kept;
        for (std::int64_t r = 0; r < rows; ++r) {
          mask.values[static_cast<std::size_t>(r)] = random() % 2;
          if (mask.values[static_cast<std::size_t>(r)]) kept.push_back(r);
        }
        Shape expected = shape;
        expected[0] = static_cast<std::int64_t>(kept.size());
        EXPECT_EQ(v.at(mask), Array<T>(expected, rows_of(kept)));
        for (const std::int64_t wrong : {rows, -rows - 1, std::numeric_limits<std::int64_t>::max(),
                                         std::numeric_limits<std::int64_t>::min()}) {
          EXPECT_THROW(v.at(wrong), Error);
          EXPECT_THROW(sparse_read(v, Ids{0, wrong}), Error);
          EXPECT_THROW(gather_nd(v, Array<std::int64_t>({1, 1}, {wrong})), Error);
        }
        EXPECT_THROW(sparse_read(v, Ids{-1}), Error);  // unlike at(), sparse_read rejects negative ids
      });
    }
  }
}

// A3.12: better: a gradient of several tables is sent to all or, if one rejects it, to none.
TEST_P(VariableCases, GradientOfSeveralTablesIsSentToAllOrNone) {
  const RankThreads ranks(
      {.ranks = ps() + 2, .flags = {{"ps", std::to_string(ps())}, {"nan-gradients", "refuse"}}});
  ParameterServerStrategy strategy(ranks.cluster());
  const Variable<float> outside("outside", Shape{3, 1});
  const auto scope = strategy.scope();
  const VariableOptions options{.optimizer = optimizers::SGD{1}};
  const TableList<Variable<float>> tables(
      {{"even", Shape{3, 1}, {}, options}, {"odd", Shape{3, 1}, {}, options}});
  expect_error_naming(Code::invalid_argument,
                      {"push", "\"odd\"", "element 0", "row 1", "nan", "--nan-gradients"}, [&] {
                        tables.push(IndexedSlices<float>{{0, 3}, {-1, static_cast<float>(kNaN)}});
                      });
  tables.push(IndexedSlices<float>{{}, {}});
  tables.tables()[0].flush();
  EXPECT_EQ(tables.tables()[0].pull(), Values<float>(3, 0));
  tables.push(IndexedSlices<float>{{5, 0, 5}, {-1, -2, -3}});
  tables.tables()[0].flush();
  EXPECT_EQ(tables.tables()[0].pull(), (Values<float>{2, 0, 0}));
  EXPECT_EQ(tables.tables()[1].pull(), (Values<float>{0, 0, 4}));

  const Ids ids{0};
  Values<float> one{1}, other{1};
  const auto& even = tables.tables()[0];
  expect_error_naming(Code::invalid_argument, {"push", "\"even\"", "\"outside\""}, [&] {
    push_all(Push{even, ids, one}, Push{outside, ids, other});
  });
  expect_error_naming(Code::invalid_argument, {"lookup", "\"outside\"", "\"even\""}, [&] {
    lookup_all(Lookup{outside, ids, one}, Lookup{even, ids, other});
  });
}

// A3.4: same.
TEST_P(VariableCases, AssignSetsAllRowsUnlessGivenAFirstRow) {
  start_with(2);
  const auto scope = strategy().scope();
  const Variable<float> v("v", Shape{3, 2});
  for (const std::size_t wrong : {0, 2, 5, 7, 8}) {
    expect_error(Code::invalid_argument,
                 "assign of variable \"v\": 3 rows of 2 elements make 6 elements, " + std::to_string(wrong) +
                     " were given",
                 [&] { v.assign(Values<float>(wrong, 1)); });
  }
  EXPECT_EQ(v.pull(), Values<float>(6, 0));
  v.assign(Values<float>{1, 2}, 2);
  EXPECT_EQ(v.pull(), (Values<float>{0, 0, 0, 0, 1, 2}));
}

// A2.14, A2.15: same.
TEST_P(VariableCases, RejectsUnknownModes) {
  start_with(2);
  const auto scope = strategy().scope();
  expect_error_naming(
      Code::invalid_argument, {"\"v\"", "aggregation 9", "none, sum, mean or only_first_replica"},
      [] { Variable<float>("v", Shape{4}, {}, {.aggregation = static_cast<VariableAggregation>(9)}); });
  expect_error_naming(
      Code::invalid_argument, {"\"v\"", "synchronization 4", "automatic, none, on_write or on_read"}, [] {
        Variable<float>("v", Shape{4}, {}, {.synchronization = static_cast<VariableSynchronization>(4)});
      });
}

// A2.13, A2.14, A4.5: same.
TEST_P(VariableCases, AllReplicasAssignOrNone) {
  const RankThreads ranks({.ranks = ps() + 2, .flags = {{"ps", std::to_string(ps())}, {"replicas", "2"}}});
  ParameterServerStrategy strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}});
  strategy.allow_run_without_coordinator();
  const auto scope = strategy.scope();
  const VariableOptions options{.aggregation = VariableAggregation::sum};
  const Variable<float> v("v", Shape{4}, {}, options), w("w", Shape{4}, {}, options);
  const Variable<bool> flags("flags", Shape{2}, {}, options);
  const Values<float> four{1, 2, 3, 4};
  const auto refused = [&](const std::string& second, const std::string& first, const auto& one) {
    expect_error(
        Code::failed_precondition,
        "replica 1 calls " + second + " where replica 0 calls " + first +
            "; every replica must make the same calls",
        [&] {
          strategy.run([&](const ReplicaContext& replica) { one(replica.replica_id_in_sync_group() == 1); });
        });
  };
  refused("assign of variable \"v\"", "assign of variable \"w\"",
          [&](bool second) { (second ? v : w).assign(four); });
  refused("assign_add of variable \"v\"", "assign of variable \"v\"",
          [&](bool second) { second ? v.assign_add(four) : v.assign(four); });
  expect_error_naming(Code::invalid_argument, {"assign", "\"v\"", "replica 1", "row 1", "replica 0", "row 2"},
                      [&] {
                        strategy.run([&](const ReplicaContext& replica) {
                          const int rows = 2 - replica.replica_id_in_sync_group();
                          v.assign(std::span(four).first(static_cast<std::size_t>(rows)), rows);
                        });
                      });
  refused("all_reduce SUM along axis 1", "all_reduce SUM along axis 0", [&](bool second) {
    get_replica_context().all_reduce(ReduceOp::SUM, Array<double>(Shape{2, 2}), second ? 1 : 0);
  });
  expect_error_naming(Code::invalid_argument, {"assign", "\"flags\"", "2 replicas", "sum"}, [&] {
    strategy.run([&] { flags.assign(Values<bool>{1, 0}); });
  });
  EXPECT_EQ(v.pull(), Values<float>(4, 0));
  EXPECT_EQ(w.pull(), Values<float>(4, 0));
  strategy.run([&] { v.assign(four); });
  EXPECT_EQ(v.pull(), (Values<float>{2, 4, 6, 8}));
}

// A3.8, A3.9: same.
TEST_P(VariableCases, SparseLookupsMatchTheirFormulas) {
  std::mt19937 random(3);
  start_with(3);
  const auto scope = strategy().scope();
  int made = 0;
  const auto check = [&]<class T>(std::type_identity<T>) {
    for (const Shape& shape : {Shape{7, 3}, Shape{5}, Shape{4, 2, 2}}) {
      Array<T> plain(shape);
      for (auto& value : plain.values) value = element_of<T>(static_cast<double>(random() % 16) / 4 - 2);
      const Variable<T> v("v" + std::to_string(made++), plain);
      const std::size_t width = v.width();
      for (int trial = 0; trial < 60; ++trial) {
        const bool weighted = random() % 2;
        const auto combiner = static_cast<Combiner>(random() % 3);
        std::optional<double> max_norm;
        if (random() % 2) max_norm = 1.5;
        const bool safe = random() % 2;
        std::optional<std::int64_t> fallback;
        if (safe && random() % 2) fallback = static_cast<std::int64_t>(random()) % shape[0];
        std::vector<Ids> ids(random() % 5);
        std::vector<std::vector<double>> weights(weighted ? ids.size() : 0);
        for (std::size_t r = 0; r < ids.size(); ++r) {
          ids[r].resize(random() % 4);
          for (auto& id : ids[r]) {
            id = static_cast<std::int64_t>(random() % (safe ? v.rows() + 2 : v.rows())) - (safe ? 2 : 0);
            if (weighted) weights[r].push_back(static_cast<double>(random() % 7) / 2 - (safe ? 1 : 0));
          }
        }
        const RaggedIds batch = RaggedIds::from_rows(ids, weights);
        const Array<T> found = safe ? safe_embedding_lookup_sparse(v, batch, combiner, fallback, max_norm)
                                    : embedding_lookup_sparse(v, batch, combiner, max_norm);
        Shape expected_shape = shape;
        expected_shape[0] = static_cast<std::int64_t>(ids.size());
        ASSERT_EQ(found.shape, expected_shape);
        for (std::size_t r = 0; r < ids.size(); ++r) {
          std::vector<std::pair<std::int64_t, double>> entries;
          for (std::size_t i = 0; i < ids[r].size(); ++i) {
            const double weight = weighted ? weights[r][i] : 1;
            if (!safe || (ids[r][i] >= 0 && weight > 0)) entries.emplace_back(ids[r][i], weight);
          }
          if (entries.empty() && fallback) entries.emplace_back(*fallback, 1);
          std::vector<double> sum(width);
          double weight_sum = 0, squares = 0;
          for (const auto& [id, weight] : entries) {
            const auto* row = plain.values.data() + static_cast<std::size_t>(id) * width;
            double norm = 0;
            for (std::size_t k = 0; k < width; ++k) norm += number_of(row[k]) * number_of(row[k]);
            norm = std::sqrt(norm);
            const double scale = max_norm && norm > *max_norm ? *max_norm / norm : 1;
            for (std::size_t k = 0; k < width; ++k) sum[k] += weight * number_of(row[k]) * scale;
            weight_sum += weight;
            squares += weight * weight;
          }
          const double divisor = combiner == Combiner::sum    ? 1
                                 : combiner == Combiner::mean ? weight_sum
                                                              : std::sqrt(squares);
          for (std::size_t k = 0; k < width; ++k) {
            const double expected = divisor == 0 ? 0 : sum[k] / divisor;
            ASSERT_NEAR(number_of(found.values[r * width + k]), expected,
                        sizeof(T) == 2 ? 0.03 + 0.02 * std::abs(expected) : 1e-5);
          }
        }
      }
    }
  };
  check(std::type_identity<float>());
  check(std::type_identity<double>());
  check(std::type_identity<float16>());
  check(std::type_identity<bfloat16>());
}

}  // namespace
}  // namespace capstan
