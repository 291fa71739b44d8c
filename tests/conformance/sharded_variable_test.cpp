// sharded_variable_test.cpp -- one variable of several shards: reads, assignments and scatter operations.
#include <algorithm>
#include <functional>
#include <random>

#include "conformance/cluster_fixture.hpp"

namespace capstan {
namespace {

class ShardedVariable : public ClusterFixture {
 protected:
  void start_with(std::int64_t shards) { start({.variable_partitioner = FixedShardsPartitioner{shards}}); }
};

using Floats = std::vector<float>;

template <class T>
using Values = std::vector<Element<T>>;

template <class T>
class OfType : public testing::Test {};
using Types = testing::Types<float, double, float16, bfloat16, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(OfType, Types);

double number(auto value) {
  if constexpr (std::is_arithmetic_v<decltype(value)>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}
template <class T>
T element(double value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

// A3.5, B124-B131: better: one push for each ps, applied by the ps that owns the rows, for every dtype and
// any order of ids.
TYPED_TEST(OfType, ScatterOperationsEqualThoseOnAPlainArray) {
  using T = TypeParam;
  const RankThreads ranks({.ranks = 5, .flags = {{"ps", "3"}}});
  ParameterServerStrategy strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{4}});
  const auto scope = strategy.scope();
  constexpr std::int64_t kRows = 30, kWidth = 3;
  const Variable<T> v("v", Shape{kRows, kWidth}, initializers::constant(6),
                      {.optimizer = optimizers::SGD{1}});
  std::vector<double> expected(kRows * kWidth, 6);
  std::mt19937 random(5);
  using Call = const Variable<T>& (Variable<T>::*)(ConstSpan<std::int64_t>, ConstSpan<T>) const;
  struct Operation {
    Call call;
    std::function<double(double, double)> rule;
  };
  const auto divide = [](double w, double x) { return std::is_integral_v<T> ? std::trunc(w / x) : w / x; };
  const std::vector<Operation> operations{
      {&Variable<T>::scatter_add, std::plus<>()},
      {&Variable<T>::scatter_sub, std::minus<>()},
      {&Variable<T>::scatter_mul, std::multiplies<>()},
      {&Variable<T>::scatter_div, divide},
      {&Variable<T>::scatter_min, [](double w, double x) { return std::min(w, x); }},
      {&Variable<T>::scatter_max, [](double w, double x) { return std::max(w, x); }},
      {&Variable<T>::scatter_update, [](double, double x) { return x; }},
      {&Variable<T>::batch_scatter_update, [](double, double x) { return x; }}};
  for (int round = 0; round < 2; ++round) {
    for (const Operation& operation : operations) {
      const Ids ids{0, 29, 12, 21, 12, 22, 10, 0, 12};
      std::vector<T> values(ids.size() * kWidth);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double x = std::vector<double>{1, 2, 4, 0.5, -1}[random() % 5];  // exact in every dtype
        values[i] = element<T>(std::is_integral_v<T> && x == 0.5 ? 3 : x);
        double& w = expected[static_cast<std::size_t>(ids[i / kWidth]) * kWidth + i % kWidth];
        w = number(element<T>(operation.rule(w, number(values[i]))));
      }
      EXPECT_EQ(&(v.*operation.call)(ids, values), &v);
      const auto now = v.pull();
      for (std::size_t i = 0; i < now.size(); ++i) ASSERT_EQ(number(now[i]), expected[i]) << i;
    }
  }
}

// A3.2, A3.3, A3.4, B119-B122, B133-B134, B180: same.
TEST_P(ShardedVariable, AssignmentsReachEveryShard) {
  for (const std::int64_t shards : {1, 3}) {
    start_with(shards);
    const auto scope = strategy().scope();
    const auto make = [](const std::string& name) {
      return Variable<float>(name, Array<float>({4, 2}, {0, 0, 1, 1, 2, 2, 3, 3}));
    };
    const auto v = make("v");
    EXPECT_EQ(v.name(), "v");
    EXPECT_EQ(v.shape(), (Shape{4, 2}));
    EXPECT_EQ(v.shards().size(), static_cast<std::size_t>(shards));
    EXPECT_EQ(v.read(), Array<float>({4, 2}, {0, 0, 1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(v.assign(Values<float>{4, 4, 5, 5, 6, 6, 7, 7}).pull(),
              (Values<float>{4, 4, 5, 5, 6, 6, 7, 7}));
    const auto plus = make("plus");
    EXPECT_EQ(plus.assign_add(Values<float>{1, 1, 1, 1, 2, 2, 2, 2}).pull(),
              (Values<float>{1, 1, 2, 2, 4, 4, 5, 5}));
    const auto minus = make("minus");
    EXPECT_EQ(minus.assign_sub(Values<float>{0, 0, 1, 1, 1, 1, 3, 3}).pull(),
              (Values<float>{0, 0, 0, 0, 1, 1, 0, 0}));
  }
}

// A3.5, B124-B130: same.
TEST_P(ShardedVariable, RepeatedScatterHasTwiceTheEffect) {
  using V = Variable<float>;
  using Scatter = const V& (V::*)(ConstSpan<std::int64_t>, ConstSpan<float>) const;
  struct Case {
    Scatter scatter;
    float factor;  // quotient of an element after both calls and its operand
  };
  for (const std::int64_t shards : {1, 3}) {
    start_with(shards);
    const auto scope = strategy().scope();
    int number = 0;
    for (const Case& c : {Case{&V::scatter_add, 2}, Case{&V::scatter_sub, -2}, Case{&V::scatter_mul, 0},
                          Case{&V::scatter_div, 0}, Case{&V::scatter_max, 1}, Case{&V::scatter_min, 0},
                          Case{&V::scatter_update, 1}, Case{&V::batch_scatter_update, 1}}) {
      const V v("v" + std::to_string(number++), Shape{30}, initializers::zeros());
      const Ids ids{0, 10, 12, 21, 22};
      for (int i = 0; i < 2; ++i) (v.*c.scatter)(ids, Values<float>{1, 2, 3, 4, 5});
      std::vector<float> expected(30);
      for (std::size_t i = 0; i < ids.size(); ++i)
        expected[static_cast<std::size_t>(ids[i])] = c.factor * static_cast<float>(i + 1);
      EXPECT_EQ(v.pull(), expected) << v.name();
    }
  }
}

// A3.4: better: an assignment leaves the optimizer's slots unchanged, and follows earlier pushes.
TEST_P(ShardedVariable, AssignmentFollowsEarlierPushes) {
  start_with(2);
  const auto scope = strategy().scope();
  const Variable<double> v(
      "v", Shape{4}, {},
      {.optimizer = optimizers::Adagrad{.learning_rate = 1, .initial_accumulator = 0, .epsilon = 0}});
  v.push_dense(Values<double>{3, 3, 3, 3});
  v.assign(Values<double>{7, 8}, 1);
  EXPECT_EQ(v.pull(), (Values<double>{-1, 7, 8, -1}));
  v.push_dense(Values<double>{4, 4, 4, 4});  // 4 / sqrt(9 + 16)
  v.flush();
  EXPECT_DOUBLE_EQ(v.pull()[1], 7 - 0.8);
}

// A3.12: better: a gradient is pushed to the complete variable, in any order of ids.
TEST_P(ShardedVariable, PushesAGradientToTheCompleteVariable) {
  start_with(3);
  const auto scope = strategy().scope();
  const Variable<float> v("v", Shape{10, 2}, initializers::constant(1), {.optimizer = optimizers::SGD{0.5}});
  v.push(IndexedSlices<float>{{9, 0, 5, 0}, {2, 2, 4, 4, 6, 6, 8, 8}});
  v.flush();
  EXPECT_EQ(v.lookup(Ids{9, 0, 5, 1}).values, (Values<float>{0, 0, -5, -5, -2, -2, 1, 1}));
}

// A3.2: better: variables of any rank, and of bool.
TEST_P(ShardedVariable, SupportsAnyRankAndBool) {
  start_with(2);
  const auto scope = strategy().scope();
  const Variable<std::int32_t> deep("deep", Shape{3, 2, 2, 1}, initializers::constant(4),
                                    {.optimizer = optimizers::SGD{1}});
  EXPECT_EQ(deep.width(), 4U);
  deep.scatter_add(Ids{2}, Values<std::int32_t>{1, 2, 3, 4});
  deep.push(Ids{0}, Values<std::int32_t>{1, 1, 1, 1});
  deep.flush();
  EXPECT_EQ(deep.pull(), (Values<std::int32_t>{3, 3, 3, 3, 4, 4, 4, 4, 5, 6, 7, 8}));
  const Variable<bool> flags("flags", Shape{3}, initializers::constant(2));
  EXPECT_EQ(flags.pull(), (Values<bool>{1, 1, 1}));
  flags.scatter_update(Ids{1}, Values<bool>{0});
  EXPECT_EQ(flags.read(), Array<bool>({3}, {1, 0, 1}));
  const Variable<double> scalar("scalar", Shape{}, initializers::constant(5));
  scalar.assign_add(Values<double>{1.5});
  EXPECT_EQ(scalar.read(), Array<double>::scalar(6.5));
}

// A3.5: better: arguments that do not fit are rejected before anything is sent.
TEST_P(ShardedVariable, RejectsArgumentsThatDoNotFit) {
  start_with(2);
  const auto scope = strategy().scope();
  const Variable<std::int64_t> v("v", Shape{4, 2}, {}, {.optimizer = optimizers::SGD{1}});
  expect_error_naming(Code::invalid_argument, {"scatter_add", "\"v\"", "2 rows", "4 elements", "3"}, [&] {
    v.scatter_add(Ids{0, 1}, Values<std::int64_t>{1, 2, 3});
  });
  expect_error_naming(Code::out_of_range, {"id 4", "position 1", "\"v\"", "0 to 3"}, [&] {
    v.scatter_add(Ids{0, 4}, Values<std::int64_t>{1, 2, 3, 4});
  });
  expect_error_naming(Code::invalid_argument, {"scatter_div", "\"v\"", "element 3"}, [&] {
    v.scatter_div(Ids{0, 1}, Values<std::int64_t>{1, 2, 3, 0});
  });
  expect_error_naming(Code::invalid_argument, {"assign_add", "\"v\"", "8 elements", "4"}, [&] {
    v.assign_add(Values<std::int64_t>{1, 2, 3, 4});
  });
  expect_error_naming(Code::out_of_range, {"3 to 5", "\"v\"", "4 rows"}, [&] {
    v.assign(Values<std::int64_t>{1, 2, 3, 4}, 3);
  });
  const Variable<bool> flags("flags", Shape{4});
  expect_error_naming(Code::invalid_argument, {"assign_add", "\"flags\"", "bool"}, [&] {
    flags.assign_add(Values<bool>{1, 1, 1, 1});
  });
  expect_error_naming(Code::invalid_argument, {"push", "\"flags\"", "bool"},
                      [&] { flags.push(Ids{0}, Values<bool>{1}); });
  EXPECT_EQ(v.pull(), Values<std::int64_t>(8, 0));
  EXPECT_EQ(flags.pull(), Values<bool>(4, 0));
}

// A3.3-A3.6: same.
TEST_P(ShardedVariable, SizesMayBeZero) {
  start();
  const auto use = [](const std::string& name, const Shape& shape) {
    SCOPED_TRACE(name);
    const Variable<float> v(name, shape, initializers::normal(0, 1), {.optimizer = optimizers::Adam{}});
    const Variable<float> orthogonal(name + "_2", Shape{shape[0], 1, 0}, initializers::orthogonal());
    const Array<float> nothing(shape);
    EXPECT_EQ(v.shape(), shape);
    EXPECT_EQ(v.shards().size(), 1u);
    EXPECT_EQ(v.read(), nothing);
    EXPECT_EQ(v.at(ellipsis), nothing);
    EXPECT_EQ(v.at(Slice{.step = -1}), nothing);
    EXPECT_EQ(sparse_read(v, Ids{}), Array<float>([&] {
                Shape none = shape;
                none[0] = 0;
                return none;
              }()));
    const Floats none;
    v.assign(none).assign_add(none).assign_sub(none);
    v.scatter_add(Ids{}, none).scatter_update(Ids{}, none).scatter_max(Ids{}, none);
    v.push(Ids{}, none);
    v.push_dense(none);
    v.flush();
    EXPECT_EQ(v.lookup(Ids{}, ReadMode::consistent).size(), 0u);
    EXPECT_EQ(v.lookup(Ids{}).values, none);
    v.pull_async(0, std::span<float>()).wait();
    expect_error(Code::out_of_range,
                 "id " + std::to_string(shape[0]) + " at position 0 is not in variable \"" + name + "\", " +
                     (shape[0] == 0 ? "which has no rows" : "which has rows 0 to 3"),
                 [&] { (void)v.lookup(Ids{shape[0]}); });
    if (shape[0] == 0) return;
    const Ids rows{3, 1, 3};  // the shards exist, and have no elements
    EXPECT_EQ(v.lookup(rows).values, none);
    EXPECT_EQ(v.lookup(rows, ReadMode::consistent).values, none);
    EXPECT_EQ(sparse_read(v, rows).shape[0], 3);
    v.scatter_add(rows, none);
    v.push(rows, none);
    v.flush();
  };
  const auto in_every_way = [&](const std::string& where) {
    use("no_rows_" + where, {0, 3});
    use("no_elements_" + where, {0});
    use("no_columns_" + where, {4, 0});
    use("no_planes_" + where, {4, 2, 0, 3});
    EXPECT_EQ(Variable<bool>("flags_" + where, Array<bool>(Shape{0, 2})).read(), Array<bool>(Shape{0, 2}));
  };
  in_every_way("outside");
  const auto scope = strategy().scope();
  in_every_way("inside");
  expect_error_naming(Code::invalid_argument, {"\"v\"", "(2, -1)"}, [] {
    const Variable<float> v("v", Shape{2, -1});
  });
}

// A2.7, A2.9-A2.11: same.
TEST_P(ShardedVariable, VariableWithoutRowsHasOneShard) {
  start_with(2);
  {
    const auto scope = strategy().scope();
    EXPECT_EQ(error_of(Code::invalid_argument,
                       [] {
                         const Variable<float> v("v", Shape{0, 3});
                       }),
              "variable_partitioner returned [0] for variable \"v\" of shape (0, 3); expected a number of "
              "shards for each axis, 1 or more for the first and 1 for the others");
    const Variable<float> columns("columns", Shape{3, 0});
    EXPECT_EQ(sizes(columns), (std::vector<std::uint64_t>{2, 1}));
    EXPECT_EQ(columns.read(), Array<float>(Shape{3, 0}));
    columns.scatter_add(Ids{2, 0}, Floats{});
  }
  start({.variable_partitioner = [](std::span<const std::int64_t> shape, DType) {
    return std::vector<std::int64_t>{shape[0] + 2, 1};
  }});
  {
    const auto scope = strategy().scope();
    expect_error_naming(Code::invalid_argument, {"\"v\"", "2 shards", "(0, 3)"}, [] {
      const Variable<float> v("v", Shape{0, 3});
    });
  }
  for (const Partitioner& partitioner :
       {Partitioner(MinSizePartitioner{.max_shards = 4}), Partitioner(MaxSizePartitioner{16})}) {
    start({.variable_partitioner = partitioner});
    const auto scope = strategy().scope();
    EXPECT_EQ(sizes(Variable<float>("v", Shape{0, 3})), std::vector<std::uint64_t>{0});
  }
}

// own: better: variables with sizes of 0, also if a ps is reached by messages or RMA only.
TEST(ZeroSizes, SendNothing) {
  for (const char* window : {"rma", "am"}) {
    const RankThreads ranks({.ranks = 4, .flags = {{"ps", "2"}, {"window", window}}});
    ParameterServerStrategy strategy(ranks.cluster());
    const auto scope = strategy.scope();
    const Variable<float> rows("rows", Shape{0, 3});
    const Variable<float> columns("columns", Shape{4, 0});
    EXPECT_EQ(rows.read(), Array<float>(Shape{0, 3}));
    EXPECT_EQ(columns.read(), Array<float>(Shape{4, 0}));
    EXPECT_EQ(columns.lookup(Ids{3, 1}, ReadMode::consistent).values, Floats{});
    columns.push(Ids{3, 1}, Floats{});
    columns.push_dense(Floats{});
    columns.scatter_add(Ids{2}, Floats{});
    rows.push_dense(Floats{});
    rows.flush();
  }
}

INSTANTIATE_TEST_SUITE_P(Clusters, ShardedVariable, testing::Values(1, 2, 3), ps_name);

}  // namespace
}  // namespace capstan
