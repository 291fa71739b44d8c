// values_test.cpp -- variables created from values, lists in braces as arguments, and variables as operands.
#include <gmock/gmock.h>

#include <array>
#include <concepts>
#include <type_traits>

#include "capstan/array.hpp"
#include "capstan/detail/slice.hpp"
#include "capstan/embedding.hpp"
#include "capstan/partitioners.hpp"
#include "conformance/cluster_fixture.hpp"
#include "support/expect_error.hpp"

namespace capstan {
namespace {

class Values_ : public ClusterFixture {};

// These expressions must not compile.
static_assert(!std::constructible_from<Variable<float>, std::string, std::vector<std::int64_t>>);
static_assert(!std::constructible_from<Variable<std::int32_t>, std::string, double>);
static_assert(!std::constructible_from<Variable<bool>, std::string, int>);
static_assert(!std::constructible_from<Array<float>, std::initializer_list<std::int64_t>>);
static_assert(!std::convertible_to<std::vector<std::int64_t>, Shape>);
template <class T>
concept TakesSizesInBraces = requires(std::int64_t rows) {
  Variable<T>("v", {rows, rows}, initializers::zeros());
};
static_assert(!TakesSizesInBraces<float> && !TakesSizesInBraces<std::int64_t>);

// A2.6: better: values in braces, a vector, a span or a number; a list of integers is never taken for a
// shape.
TEST_P(Values_, BracesAreValuesAndShapesAreExplicit) {
  start();
  const auto scope = strategy().scope();
  EXPECT_EQ(Variable<float>("f", {1, 2, 3}).read(), Array<float>::vector({1, 2, 3}));
  EXPECT_EQ(Variable<std::int64_t>("i", {2, 3}).read(), Array<std::int64_t>::vector({2, 3}));
  EXPECT_EQ(Variable<std::int32_t>("one", {7}).shape(), (Shape{1}));
  EXPECT_EQ(Variable<bool>("b", {true, false}).read(), Array<bool>::vector({1, 0}));
  EXPECT_EQ(Variable<float>("matrix", {{1, 2, 3}, {4, 5, 6}}).read(),
            Array<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Variable("of bools", {{true, false}, {false, false}}).read(),
            Array<bool>(Shape{2, 2}, {1, 0, 0, 0}));
  EXPECT_EQ(Variable<double>("of a shape", Shape{2, 2}, {{1, 2}, {3, 4}}).read().values,
            (std::vector<double>{1, 2, 3, 4}));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] {
                         Variable<float>("ragged", {{1, 2}, {3}});
                       }),
              testing::HasSubstr("row 1 has 1 values, expected 2"));
  EXPECT_EQ(Variable<float16>("h", {float16(1), float16(0.5F)}).pull()[1], float16(0.5F));
  EXPECT_EQ(Variable<std::int64_t>("shape", Shape{2, 3}).read(), Array<std::int64_t>(Shape{2, 3}));
  const Variable<double> momentum("m", {1, 2}, {.optimizer = optimizers::Momentum{}, .trainable = false});
  EXPECT_FALSE(momentum.trainable());
}

// A2.6: better: values in braces, a vector, a span or a number; a list of integers is never taken for a
// shape.
TEST_P(Values_, VectorsSpansAndNumbersAreValues) {
  start();
  const auto scope = strategy().scope();
  const std::vector<std::int64_t> integers{5, 6};
  EXPECT_EQ(Variable<std::int64_t>("integers", integers).read(), Array<std::int64_t>::vector({5, 6}));
  const std::array<float, 2> floats{1, 2};
  EXPECT_EQ(Variable<float>("array", floats).read(), Array<float>::vector({1, 2}));
  EXPECT_EQ(Variable<float>("span", std::span(floats)).read(), Array<float>::vector({1, 2}));
  EXPECT_EQ(Variable<bool>("bits", std::vector<bool>{true, false}).read(), Array<bool>::vector({1, 0}));
  EXPECT_EQ(Variable<float>("number", 1).read(), Array<float>::scalar(1));
  EXPECT_EQ(Variable<float16>("half", 0.5).pull()[0], float16(0.5F));
  EXPECT_EQ(Variable<bool>("flag", true).read(), Array<bool>::scalar(1));
}

// A2.6: better: values in braces, a vector, a span or a number; a list of integers is never taken for a
// shape.
TEST_P(Values_, ValuesFillAnyShapeOfEqualSize) {
  start();
  const auto scope = strategy().scope();
  EXPECT_EQ(Variable<float>("braces", Shape{2, 2}, {1, 2, 3, 4}).read(), Array<float>({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(Variable<float>("vector", Shape{1, 2}, std::vector<float>{1, 2}).read(),
            Array<float>({1, 2}, {1, 2}));
  EXPECT_EQ(Variable<float>("scalar", Shape{}, 3).read(), Array<float>::scalar(3));
  error_of(Code::invalid_argument, [] { Variable<float>("few", Shape{2, 2}, {1, 2, 3}); });
  error_of(Code::invalid_argument, [] { Variable<float>("number", Shape{2}, 3); });
  error_of(Code::invalid_argument, [] {
    Variable<float>("array", Shape{1, 2}, Array<float>::vector({1, 2}));
  });
}

// A2.6: better: values in braces, a vector, a span or a number; a list of integers is never taken for a
// shape.
TEST_P(Values_, InfersTheDtypeFromTheValues) {
  start();
  const auto scope = strategy().scope();
  const Variable number("number", 1.0F);
  static_assert(std::same_as<decltype(number), const Variable<float>>);
  const Variable braces("braces", {1, 2, 3});
  static_assert(std::same_as<decltype(braces), const Variable<std::int32_t>>);
  const Variable vector("vector", std::vector<double>{1, 2}, {.trainable = false});
  static_assert(std::same_as<decltype(vector), const Variable<double>>);
  const Variable array("array", Array<bool>::vector({1}));
  static_assert(std::same_as<decltype(array), const Variable<bool>>);
  const Variable copy = number;
  static_assert(std::same_as<decltype(copy), const Variable<float>>);
  EXPECT_EQ(number.read(), Array<float>::scalar(1));
  EXPECT_EQ(braces.pull(), (std::vector<std::int32_t>{1, 2, 3}));
}

// A3.4: same.
// A3.5: same.
TEST_P(Values_, ChangesAndReadsAcceptBraces) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  const Variable<float> v("v", Shape{4}, {}, {.optimizer = optimizers::SGD{1}});
  v.assign({1, 2, 3, 4}).assign({9}, 3).assign_add({1, 1, 1, 1}).assign_sub({0, 0, 0, 5});
  EXPECT_EQ(v.pull(), (std::vector<float>{2, 3, 4, 5}));
  v.scatter_update({3, 0}, {7, 8});
  v.scatter_add({1, 1}, {1, 1});
  EXPECT_EQ(v.pull(), (std::vector<float>{8, 5, 4, 7}));
  EXPECT_EQ(v.lookup({0, 3}).values, (std::vector<float>{8, 7}));
  EXPECT_EQ(v.lookup({1}, ReadMode::consistent).values, (std::vector<float>{5}));
  v.push({2, 0}, {1, 2});
  v.push_dense({1, 0, 0, 0});
  v.flush();
  EXPECT_EQ(v.pull(), (std::vector<float>{5, 5, 3, 7}));
  EXPECT_EQ(embedding_lookup(v, {3, 0}).values, (std::vector<float>{7, 5}));
  EXPECT_EQ(sparse_read(v, {3, 0}).values, (std::vector<float>{7, 5}));
}

// A3.3: same.
TEST_P(Values_, ShardedVariableIsAnOperand) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  const Variable<float> w("w", {1, 2, 3});
  ASSERT_EQ(w.shards().size(), 2U);
  const auto x = Array<float>::vector({4, 5, 6});
  EXPECT_EQ(x * w, Array<float>::vector({4, 10, 18}));
  EXPECT_EQ(w * x, Array<float>::vector({4, 10, 18}));
  EXPECT_EQ(w + w, Array<float>::vector({2, 4, 6}));
  EXPECT_EQ(2 * w - 1, Array<float>::vector({1, 3, 5}));
  EXPECT_EQ(6 / w, Array<float>::vector({6, 3, 2}));
  EXPECT_EQ(w >= 2, Array<bool>::vector({0, 1, 1}));
  const auto sum = [](const Array<float>& array) { return array.values[0] + array.values[2]; };
  EXPECT_EQ(sum(w), 4);  // as an array argument
}

INSTANTIATE_TEST_SUITE_P(, Values_, testing::Values(1, 2, 3), ps_name);

// A3.3: same.
TEST(Comparisons, AcceptArraysAndNumbersInAnyOrder) {
  const auto a = Array<int>::vector({9, 10, 11});
  EXPECT_EQ(greater(a, 10), Array<bool>::vector({0, 0, 1}));
  EXPECT_EQ(less(10, a), Array<bool>::vector({0, 0, 1}));
  EXPECT_EQ(a >= 10, Array<bool>::vector({0, 1, 1}));
  EXPECT_EQ(a <= 10, Array<bool>::vector({1, 1, 0}));
  EXPECT_EQ(a < a + 1, Array<bool>::vector({1, 1, 1}));
  EXPECT_EQ(a > Array<int>::vector({10, 10, 10}), Array<bool>::vector({0, 0, 1}));
  EXPECT_EQ(equal(a, 10), Array<bool>::vector({0, 1, 0}));
  EXPECT_EQ(not_equal(a, 10), !equal(a, 10));
  static_assert(!ArrayOperands<Array<int>, double>);  // a fraction would be truncated
  static_assert(!ArrayOperands<Array<int>, Array<float>>);
  error_of(Code::invalid_argument, [&] { return a >= Array<int>::vector({1}); });
}

// A2.7: same.
TEST(StrategyArguments, MayBeAPartitionerAlone) {
  const RankThreads ranks({.ranks = 4, .flags = {{"ps", "2"}}});
  ParameterServerStrategy strategy(ranks.cluster(), FixedShardsPartitioner{2});
  const auto scope = strategy.scope();
  EXPECT_EQ(Variable<float>("v", Shape{4}).shards().size(), 2U);
}

// A1.12: same.
TEST(StrategyArguments, RejectGpusIfTheReplicasAreThreads) {
  const RankThreads ranks({.ranks = 3, .flags = {{"ps", "1"}, {"replicas", "2"}}});
  error_of(Code::invalid_argument,
           [&] { ParameterServerStrategy strategy(ranks.cluster(), {.num_gpus_per_worker = 2}); });
  EXPECT_EQ(ParameterServerStrategy(ranks.cluster(), {.num_gpus_per_worker = 0}).num_replicas_in_sync(), 2);
}

}  // namespace
}  // namespace capstan
