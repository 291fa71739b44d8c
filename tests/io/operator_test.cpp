// operator_test.cpp -- descriptions and properties that operators derive from their inputs and recipes.
#include "capstan/data/operator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capstan/dataset.hpp"
#include "support/expect_error.hpp"

namespace capstan::data {
namespace {

/// An operator with configurable properties.
class StubOperator : public Operator {
 public:
  explicit StubOperator(std::vector<OperatorPointer> inputs = {}, BatchInfo batches = {},
                        bool endless = false)
      : inputs_(std::move(inputs)), batches_(batches), endless_(endless) {}

  Kind kind() const noexcept override { return Kind::map; }
  std::vector<OperatorPointer> inputs() const override { return inputs_; }
  BatchInfo batches() const override { return batches_; }
  bool endless() const override { return endless_ || Operator::endless(); }
  OperatorPointer sharded(std::int64_t, std::int64_t, bool) const override { return nullptr; }

 private:
  std::vector<OperatorPointer> inputs_;
  BatchInfo batches_;
  bool endless_;
};

OperatorPointer stub(std::vector<OperatorPointer> inputs = {}, BatchInfo batches = {}, bool endless = false) {
  return std::make_shared<StubOperator>(std::move(inputs), batches, endless);
}

const std::uint32_t kFirstFunction = 7, kSecondFunction = 9;

std::shared_ptr<StubOperator> with_recipe(const std::uint32_t& function, std::int64_t argument,
                                          std::vector<OperatorPointer> inputs = {}) {
  auto result = std::make_shared<StubOperator>(std::move(inputs));
  result->set_recipe({&function, [argument](Writer& out) { capstan::write(out, argument); }});
  return result;
}

TEST(Operator, KindsHaveDistinctNames) {
  std::set<std::string> names;
  const auto kinds = static_cast<std::uint8_t>(Kind::side_by_side) + 1;
  for (int kind = 0; kind < kinds; ++kind) names.emplace(to_string(static_cast<Kind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kinds));
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(to_string(Kind::vector), "from_vector");
  EXPECT_EQ(to_string(Kind::shuffle), "shuffle");
  EXPECT_EQ(to_string(Kind::side_by_side), "side_by_side");
  EXPECT_EQ(to_string(static_cast<Kind>(kinds)), "unknown");
  EXPECT_EQ(to_string(static_cast<Kind>(255)), "unknown");
}

TEST(Operator, DescribesItselfThenItsInputsThenItsArguments) {
  const auto first = with_recipe(kFirstFunction, 1);
  const auto second = with_recipe(kFirstFunction, 2);
  Writer out;
  with_recipe(kSecondFunction, 3, {first, second})->describe(out);
  Writer expected;
  capstan::write(expected, kSecondFunction);
  for (const std::int64_t argument : {1, 2}) {
    capstan::write(expected, kFirstFunction);
    capstan::write(expected, argument);
  }
  capstan::write(expected, std::int64_t{3});
  EXPECT_EQ(std::move(out).take(), std::move(expected).take());
}

TEST(Operator, DescribeRejectsAnOperatorWithoutRecipe) {
  Writer out;
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { stub()->describe(out); }), testing::HasSubstr("'map'"));
  const auto outer = with_recipe(kFirstFunction, 1, {with_recipe(kFirstFunction, 2), stub()});
  (void)error_of(Code::invalid_argument, [&] { outer->describe(out); });
}

TEST(Operator, IsEndlessIfAnInputIs) {
  const auto endless = stub({}, {}, true);
  EXPECT_FALSE(stub()->endless());
  EXPECT_FALSE(stub({stub(), stub()})->endless());
  EXPECT_TRUE(stub({stub(), endless})->endless());
  EXPECT_TRUE(stub({stub({endless})})->endless());
}

TEST(Operator, BatchesAreFullIfAllInputsHaveFullBatchesOfOneSize) {
  const auto info = [](std::vector<BatchInfo> batches) {
    std::vector<OperatorPointer> inputs;
    for (const BatchInfo& one : batches) inputs.push_back(stub({}, one));
    const BatchInfo all = batches_of(inputs);
    return std::pair(all.size, all.always_full);
  };
  EXPECT_EQ(info({{8, true}}), std::pair(std::int64_t{8}, true));
  EXPECT_EQ(info({{8, true}, {8, true}, {8, true}}), std::pair(std::int64_t{8}, true));
  EXPECT_EQ(info({{8, true}, {8, false}, {8, true}}), std::pair(std::int64_t{8}, false));
  EXPECT_EQ(info({{8, false}, {8, true}}), std::pair(std::int64_t{8}, false));
  EXPECT_EQ(info({{8, true}, {4, true}}), std::pair(std::int64_t{-1}, false));
  EXPECT_EQ(info({{8, true}, {}}), std::pair(std::int64_t{-1}, false));
}

TEST(Operator, RequireAtLeastRejectsSmallerValues) {
  require_at_least(2, 2, "the size");
  require_at_least(3, 2, "the size");
  const std::string error = error_of(Code::invalid_argument, [] { require_at_least(-1, 2, "the size"); });
  for (const char* parameter : {"the size", "-1", "2"}) EXPECT_THAT(error, testing::HasSubstr(parameter));
}

TEST(Operator, ListFilesYieldsTheNames) {
  const Paths names{"b.txt", "a.txt"};
  const Dataset<std::filesystem::path> dataset = list_files(names);
  EXPECT_EQ(dataset.node()->kind(), Kind::file_names);
  EXPECT_EQ(dataset.node()->files(), names);
  auto iterator = dataset.make_iterator();
  EXPECT_EQ(iterator.next(), "b.txt");
  EXPECT_EQ(iterator.next(), "a.txt");
  EXPECT_FALSE(iterator.try_next().has_value());
}

}  // namespace
}  // namespace capstan::data
