// values_test.cpp -- variables made of values, lists in braces as arguments, and variables as operands.
#include <array>
#include <concepts>
#include <type_traits>

#include "conformance/cluster_fixture.hpp"

namespace capstan {
namespace {

class Values_ : public ClusterFixture {};

// What does not compile.
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
TEST_P(Values_, BracesAreValuesAndAShapeIsSpelledOut) {
  start();
  const auto scope = strategy().scope();
  EXPECT_EQ(Variable<float>("f", {1, 2, 3}).read(), Array<float>::vector({1, 2, 3}));
  EXPECT_EQ(Variable<std::int64_t>("i", {2, 3}).read(), Array<std::int64_t>::vector({2, 3}));
  EXPECT_EQ(Variable<std::int32_t>("one", {7}).shape(), (Shape{1}));
  EXPECT_EQ(Variable<bool>("b", {true, false}).read(), Array<bool>::vector({1, 0}));
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
TEST_P(Values_, ValuesFillAnyShapeOfAsManyElements) {
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
TEST_P(Values_, TheTypeOfTheValuesIsTheVariables) {
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

INSTANTIATE_TEST_SUITE_P(, Values_, testing::Values(1, 2, 3), ps_name);

}  // namespace
}  // namespace capstan
