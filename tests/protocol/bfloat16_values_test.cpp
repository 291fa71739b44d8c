// bfloat16_values_test.cpp -- vectors convert exactly as the scalar type, for every kind of number.
#include "protocol/bfloat16_values.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace capstan::protocol {
namespace {

TEST(Bfloat16Values, RoundLikeTheScalarType) {
  std::vector<float> values;
  // Every upper half, with the lower halves around a tie.
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  std::vector<bfloat16> narrow(values.size());
  to_bfloat16(values, narrow.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint16_t>(narrow[i]), std::bit_cast<std::uint16_t>(bfloat16(values[i])))
        << std::hex << std::bit_cast<std::uint32_t>(values[i]);
  }
}

TEST(Bfloat16Values, WidenExactly) {
  std::vector<bfloat16> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    values.push_back(bfloat16::from_bits(static_cast<std::uint16_t>(bits)));
  std::vector<float> wide(values.size());
  from_bfloat16(values, wide.data());
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[bits]), bits << 16);
}

TEST(Bfloat16Values, AnyCountIsConverted) {
  for (std::size_t count = 0; count < 70; ++count) {
    const std::vector<float> ones(count, 1.0F);
    std::vector<bfloat16> narrow(count + 1, bfloat16(7.0F));
    to_bfloat16(ones, narrow.data());
    std::vector<float> wide(count + 1, 9.0F);
    from_bfloat16(std::span(narrow).first(count), wide.data());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(wide[i], 1.0F) << count;
    EXPECT_EQ(narrow[count], bfloat16(7.0F)) << count;
    EXPECT_EQ(wide[count], 9.0F) << count;
  }
}

TEST(Bfloat16Values, MemoryMayHaveAnyAlignment) {
  constexpr std::size_t kCount = 37;
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i);
  std::vector<std::byte> narrow(kCount * sizeof(bfloat16) + 1);
  std::vector<std::byte> wide(kCount * sizeof(float) + 1);
  auto* const odd = reinterpret_cast<bfloat16*>(narrow.data() + 1);
  to_bfloat16(values, odd);
  from_bfloat16({odd, kCount}, reinterpret_cast<float*>(wide.data() + 1));
  std::vector<float> found(kCount);
  std::memcpy(found.data(), wide.data() + 1, kCount * sizeof(float));
  EXPECT_EQ(found, values);
}

std::vector<bfloat16> rounded_stochastically(const std::vector<float>& values, std::uint64_t seed) {
  std::vector<bfloat16> narrow(values.size());
  to_bfloat16_stochastically(values, narrow.data(), seed);
  return narrow;
}

/// Expects `count` of `trials` with probability p, within six standard deviations.
void expect_binomial(std::size_t count, std::size_t trials, double p) {
  const double deviation = std::sqrt(static_cast<double>(trials) * p * (1 - p));
  EXPECT_NEAR(static_cast<double>(count), static_cast<double>(trials) * p, 6 * deviation) << p;
}

TEST(Bfloat16Values, StochasticRoundingIsUnbiasedAndIndependent) {
  constexpr std::size_t kValues = 100'000;
  for (const float sign : {1.0F, -1.0F}) {
    for (const double share : {1.0 / 256, 0.25, 0.5, 0.875}) {
      const float low = sign * 3.0F;  // the next number away from zero is 2^-6 further
      const auto value = static_cast<float>(low + sign * share / 64);
      const std::vector<float> values(kValues, value);
      const std::vector<bfloat16> first = rounded_stochastically(values, 17);
      const std::vector<bfloat16> second = rounded_stochastically(values, 18);
      std::size_t away = 0, of_both_seeds = 0, of_both_neighbors = 0;
      for (std::size_t i = 0; i < kValues; ++i) {
        const auto is_away = [&](const std::vector<bfloat16>& narrow, std::size_t at) {
          const auto rounded = static_cast<float>(narrow[at]);
          EXPECT_TRUE(rounded == low || rounded == low + sign / 64) << rounded;
          return rounded != low;
        };
        away += is_away(first, i) ? 1 : 0;
        of_both_seeds += is_away(first, i) && is_away(second, i) ? 1 : 0;
        of_both_neighbors += is_away(first, i) && is_away(first, (i + 1) % kValues) ? 1 : 0;
      }
      expect_binomial(away, kValues, share);
      expect_binomial(of_both_seeds, kValues, share * share);
      // The pairs overlap, so that the deviation is up to sqrt(3) times that of a binomial distribution.
      EXPECT_NEAR(static_cast<double>(of_both_neighbors), kValues * share * share,
                  6 * std::sqrt(3 * kValues * share * share * (1 - share * share)));
    }
  }
}

TEST(Bfloat16Values, StochasticRoundingKeepsWhatHasNoTwoNeighbors) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto largest = std::bit_cast<float>(0x7F7F'0000);
  const auto beyond = std::bit_cast<float>(0x7F7F'4000);      // nearest is the largest
  const auto far_beyond = std::bit_cast<float>(0x7F7F'C000);  // nearest is infinity
  const std::vector<float> kept{0.0F, -0.0F, 1.0F, -3.5F, 0x1p-126F, largest, -largest, infinity, -infinity};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<bfloat16> narrow = rounded_stochastically(kept, seed);
    for (std::size_t i = 0; i < kept.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint16_t>(narrow[i]), std::bit_cast<std::uint32_t>(kept[i]) >> 16) << i;
    const std::vector<float> special{std::numeric_limits<float>::quiet_NaN(),
                                     std::bit_cast<float>(0x7F80'0001),
                                     std::bit_cast<float>(0xFFFF'FFFF),
                                     beyond,
                                     far_beyond,
                                     -far_beyond};
    const std::vector<bfloat16> of_special = rounded_stochastically(special, seed);
    for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(std::isnan(static_cast<float>(of_special[i]))) << i;
    ASSERT_EQ(static_cast<float>(of_special[3]), largest);
    ASSERT_EQ(static_cast<float>(of_special[4]), infinity);
    ASSERT_EQ(static_cast<float>(of_special[5]), -infinity);
  }
}

TEST(Bfloat16Values, StochasticRoundingDependsOnSeedAndPositionOnly) {
  const std::vector<float> values(100, 1.0F + 0x1p-8F);
  const std::vector<bfloat16> all = rounded_stochastically(values, 5);
  for (std::size_t count = 0; count < values.size(); ++count) {
    std::vector<bfloat16> some(count + 1, bfloat16(7.0F));
    to_bfloat16_stochastically(std::span(values).first(count), some.data(), 5);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(some[i], all[i]) << count;
    ASSERT_EQ(some[count], bfloat16(7.0F)) << count;
  }
  EXPECT_NE(rounded_stochastically(values, 6), all);
  EXPECT_NE(rounded_stochastically(values, 5 + (std::uint64_t{1} << 32)), all);
}

}  // namespace
}  // namespace capstan::protocol
