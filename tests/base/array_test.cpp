// array_test.cpp -- sizes and values of arrays, and rejection of invalid shapes.
#include "capstan/array.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace capstan {
namespace {

TEST(Array, HasOneValuePerElementOfItsShape) {
  EXPECT_EQ(Array<float>().size(), 1U);
  EXPECT_EQ(Array<bool>(Shape{2, 3}).values, std::vector<std::uint8_t>(6));
  EXPECT_EQ(Array<int>(Shape{0, 3}).size(), 0U);
  EXPECT_EQ(Array<int>::vector({1, 2}), Array<int>({2}, {1, 2}));
  EXPECT_NE(Array<int>({2, 1}, {1, 2}), Array<int>({1, 2}, {1, 2}));
  expect_error(Code::invalid_argument, "array of shape (2, 3): found 1 values, expected 6", [] {
    Array<int>({2, 3}, {1});
  });
}

TEST(Array, RejectsInvalidShapes) {
  for (const Shape& shape : {Shape{-1}, Shape{std::int64_t{1} << 32, std::int64_t{1} << 31}}) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { (void)elements_of(shape); }),
                testing::HasSubstr(to_string(shape)));
  }
}

TEST(Array, RejectsShapesBeyondTheAddressSpace) {
  for (const int extra : {0, 512}) {  // sizes in bytes that wrap around to 0 and 4096
    const Shape shape{(std::int64_t{1} << 61) + extra};
    const std::string text = error_of(Code::invalid_argument, [&] { Array<double>{shape}; });
    EXPECT_NE(text.find(to_string(shape)), text.npos) << text;
    EXPECT_EQ(elements_of(shape, 1), shape[0]);
  }
  error_of(Code::invalid_argument, [] { Array<double>(Shape{std::int64_t{1} << 60}); });
}

}  // namespace
}  // namespace capstan
