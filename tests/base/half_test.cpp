// half_test.cpp -- 16-bit floating point, compared with IEEE 754 rounding by exhaustive search.
#include "capstan/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace capstan {
namespace {

/// Returns the nearest number of the format, ties to even, by exhaustive search; infinity from `overflow` on.
template <class Half>
float nearest(float value, float largest, float overflow) {
  if (std::fabs(value) >= overflow) return std::copysign(std::numeric_limits<float>::infinity(), value);
  std::uint16_t best = 0;
  for (std::uint32_t bits = 0; bits < 0x8000; ++bits) {
    const auto candidate = static_cast<float>(Half::from_bits(static_cast<std::uint16_t>(bits)));
    if (!(candidate <= largest)) break;
    const double distance = std::fabs(double{std::fabs(value)} - candidate);
    const double best_distance =
        std::fabs(double{std::fabs(value)} - static_cast<float>(Half::from_bits(best)));
    if (distance < best_distance || (distance == best_distance && bits % 2 == 0))
      best = static_cast<std::uint16_t>(bits);
  }
  return std::copysign(static_cast<float>(Half::from_bits(best)), value);
}

const float kValues[] = {0.0F,          1.0F,       -1.0F,    0.1F,     -0.3F,    65504.0F,
                         65519.9F,      65520.0F,   1e6F,     0x1p-14F, 0x1p-24F, 0x1p-25F,
                         0x1.8p-25F,    0x1.1p-15F, 1.0F / 3, 2049.0F,  2051.0F,  0x1p-26F,
                         -0x1.ffcp-15F, 257.0F,     259.0F,   3.14159F, 1e-30F,   3e38F};

TEST(Half, Float16RoundsToTheNearestTiesToEven) {
  for (const float value : kValues) {
    EXPECT_EQ(static_cast<float>(float16(value)), nearest<float16>(value, 65504.0F, 65520.0F)) << value;
  }
}

TEST(Half, Bfloat16RoundsToTheNearestTiesToEven) {
  for (const float value : kValues) {
    EXPECT_EQ(static_cast<float>(bfloat16(value)), nearest<bfloat16>(value, 0x1.fep127F, 0x1.ffp127F))
        << value;
  }
}

TEST(Half, EveryNumberSurvivesARoundTripThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = float16::from_bits(static_cast<std::uint16_t>(bits));
    const auto brain = bfloat16::from_bits(static_cast<std::uint16_t>(bits));
    if (!std::isnan(static_cast<float>(half))) {
      EXPECT_EQ(float16(static_cast<float>(half)).bits(), bits);
    } else {
      EXPECT_TRUE(std::isnan(static_cast<float>(float16(static_cast<float>(half)))));
    }
    if (!std::isnan(static_cast<float>(brain))) {
      EXPECT_EQ(bfloat16(static_cast<float>(brain)).bits(), bits);
    } else {
      EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(static_cast<float>(brain)))));
    }
  }
}

}  // namespace
}  // namespace capstan
