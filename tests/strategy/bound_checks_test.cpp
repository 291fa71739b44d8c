// bound_checks_test.cpp -- checks of the number of elements passed to calls on a variable.
#include "strategy/bound_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.hpp"

namespace capstan::strategy {
namespace {

BoundVariable bound_variable(const std::vector<std::uint64_t>& shape, DType dtype = DType::float32) {
  BoundVariable bound;
  bound.descriptor.name = "embedding";
  bound.descriptor.dtype = dtype;
  bound.descriptor.shape = shape;
  return bound;
}

TEST(BoundChecks, CountsTheCompleteRowsInElements) {
  EXPECT_EQ(rows_of(bound_variable({9, 4}), 12), 3U);
  EXPECT_EQ(rows_of(bound_variable({9, 2, 2}), 15), 3U);
  EXPECT_EQ(rows_of(bound_variable({9}), 5), 5U);
  EXPECT_EQ(rows_of(bound_variable({}), 1), 1U);
  EXPECT_EQ(rows_of(bound_variable({9, 0}), 12), 0U) << "a row has no elements";
}

TEST(BoundChecks, AcceptsElementsThatMakeUpTheRows) {
  check_elements(bound_variable({9, 4}), 12, 3, "push");
  check_elements(bound_variable({9, 4}), 0, 0, "push");
  check_elements(bound_variable({9, 0}), 0, 3, "push");
  check_elements(bound_variable({}), 1, 1, "assign");
}

TEST(BoundChecks, RejectsElementsThatDoNotMakeUpTheRows) {
  for (const std::size_t elements : {0, 4, 11, 13, 24}) {
    const std::string error = error_of(Code::invalid_argument, [&] {
      check_elements(bound_variable({9, 4}), elements, 3, "push");
    });
    for (const std::string& parameter :
         {std::string("push"), std::string("\"embedding\""), std::to_string(elements), std::string("12")}) {
      EXPECT_THAT(error, testing::HasSubstr(parameter));
    }
  }
  (void)error_of(Code::invalid_argument, [] { check_elements(bound_variable({9, 0}), 1, 1, "push"); });
}

TEST(BoundChecks, RejectsPushesOnlyForBools) {
  for (const DType dtype :
       {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::int32, DType::int64}) {
    EXPECT_NO_THROW(check_push(bound_variable({3}, dtype))) << to_string(dtype);
  }
  EXPECT_THAT(error_of(Code::invalid_argument, [] { check_push(bound_variable({3}, DType::boolean)); }),
              testing::HasSubstr("\"embedding\""));
}

}  // namespace
}  // namespace capstan::strategy
