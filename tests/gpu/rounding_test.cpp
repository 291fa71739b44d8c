// rounding_test.cpp -- stochastic rounding to 16 bits: to an adjacent number, with the correct mean.
#include "gpu/rounding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace capstan::gpu {
namespace {

template <class Half>
class Stochastic : public testing::Test {};
using Halves = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(Stochastic, Halves);

TYPED_TEST(Stochastic, HasTheCorrectMeanAndRoundsToAdjacentNumbers) {
  for (const float x :
       {1.0003F, -1.0003F, 3.14159F, 0.1F, -0.1F, 1000.3F, 6e-5F, 3.1e-8F, -2.4e-7F, 60000.7F}) {
    constexpr int kTimes = 20000;
    double sum = 0;
    std::set<float> seen;
    for (int i = 0; i < kTimes; ++i) {
      const auto rounded = round_stochastically<TypeParam>(x, random_bits(7, static_cast<std::uint64_t>(i)));
      seen.insert(static_cast<float>(rounded));
      sum += static_cast<double>(static_cast<float>(rounded));
    }
    ASSERT_EQ(seen.size(), 2U) << x;
    const double low = *seen.begin(), high = *seen.rbegin();
    EXPECT_LT(low, x);
    EXPECT_GT(high, x);
    // No other 16-bit number lies between them.
    const auto middle = static_cast<float>(TypeParam(static_cast<float>((low + high) / 2)));
    EXPECT_TRUE(middle == low || middle == high) << x;
    // The standard deviation of a share in 20,000 trials is at most 0.0036.
    EXPECT_NEAR((sum / kTimes - low) / (high - low), (x - low) / (high - low), 5 * 0.0036) << x;
  }
}

TYPED_TEST(Stochastic, KeepsRepresentableNumbers) {
  for (const float x : {0.0F, -0.0F, 1.0F, -2.5F, 1024.0F, std::numeric_limits<float>::infinity()}) {
    for (const std::uint32_t random : {0U, 0x80000000U, 0xFFFFFFFFU}) {
      const auto rounded = static_cast<float>(round_stochastically<TypeParam>(x, random));
      EXPECT_EQ(rounded, x);
      EXPECT_EQ(std::signbit(rounded), std::signbit(x));
    }
  }
  const auto rounded_nan = round_stochastically<TypeParam>(std::numeric_limits<float>::quiet_NaN(), 1);
  EXPECT_TRUE(std::isnan(static_cast<float>(rounded_nan)));
}

TEST(Stochastic16, RoundsValuesOutOfRangeToNearest) {
  EXPECT_EQ(static_cast<float>(round_stochastically<float16>(65510.0F, 0)), 65504.0F);
  EXPECT_TRUE(std::isinf(static_cast<float>(round_stochastically<float16>(1e6F, 0xFFFFFFFFU))));
}

TEST(RandomBits, AreDeterministicAndDiffer) {
  std::set<std::uint32_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t element = 0; element < 100; ++element) seen.insert(random_bits(seed, element));
  }
  EXPECT_GT(seen.size(), 990U);
  EXPECT_EQ(random_bits(3, 5), random_bits(3, 5));
}

TEST(Narrowed, RoundsOnlyNarrowerTypes) {
  EXPECT_EQ(narrowed<double>(0.1, {true, 1}, 0), 0.1);
  EXPECT_EQ(narrowed<float16>(0.1F, {}, 0), float16(0.1F));
}

}  // namespace
}  // namespace capstan::gpu
