// int8_rows_test.cpp -- the error bound of 8-bit rows, for all widths, extreme values and alignments.
#include "protocol/int8_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace capstan::protocol {
namespace {

using Limits = std::numeric_limits<float>;

std::vector<std::byte> int8_of(const std::vector<float>& values, std::uint64_t width) {
  std::vector<std::byte> sent(values.size() / width * int8_row_bytes(width));
  to_int8_rows(values, width, sent.data());
  return sent;
}

std::vector<float> through_int8(const std::vector<float>& values, std::uint64_t width) {
  std::vector<float> received(values.size(), -7.0F);
  from_int8_rows(int8_of(values, width), width, received.data());
  return received;
}

/// Expects an error of at most half a step, and the rounding of a float32 of the row's magnitude.
void expect_within_half_a_step(const std::vector<float>& row, const float* received) {
  const auto [low, high] = std::minmax_element(row.begin(), row.end());
  const double range = static_cast<double>(*high) - static_cast<double>(*low);
  const double magnitude =
      std::max(std::abs(static_cast<double>(*low)), std::abs(static_cast<double>(*high)));
  const double bound =
      range / 510 * (1 + 1e-4) + magnitude * 0x1p-23 + static_cast<double>(Limits::denorm_min());
  for (std::size_t i = 0; i < row.size(); ++i) {
    ASSERT_LE(std::abs(static_cast<double>(received[i]) - static_cast<double>(row[i])), bound)
        << "element " << i << " of " << row.size() << ": sent " << row[i] << ", received " << received[i];
  }
}

TEST(Int8Rows, ErrorIsAtMostHalfAStepForEveryWidth) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-2, 5);
  for (std::size_t width = 1; width <= 300; ++width) {
    constexpr std::size_t kRows = 5;
    std::vector<float> values(kRows * width);
    for (float& value : values) value = uniform(random);
    const std::vector<float> received = through_int8(values, width);
    for (std::size_t row = 0; row < kRows; ++row) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * width);
      const std::vector<float> one(first, first + static_cast<std::ptrdiff_t>(width));
      expect_within_half_a_step(one, received.data() + row * width);
    }
  }
}

// The extremes may be in any vector of a row, or in the rest.
TEST(Int8Rows, FindExtremesAtEveryPosition) {
  for (const std::size_t width : {1, 3, 8, 16, 17, 64, 70}) {
    for (std::size_t at = 0; at < width; ++at) {
      for (const float extreme : {-1020.0F, 1020.0F}) {  // steps of 4
        std::vector<float> row(width, 0.0F);
        row[at] = extreme;
        const std::vector<float> received = through_int8(row, width);
        ASSERT_EQ(received, row) << width << ' ' << at;
      }
    }
  }
}

TEST(Int8Rows, FormatIsMinimumStepAndBytes) {
  std::vector<float> row(256);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = -3 + 0.5F * static_cast<float>(i);  // 255 steps
  const std::vector<std::byte> sent = int8_of(row, row.size());
  ASSERT_EQ(sent.size(), 8 + row.size());
  float scale[2];
  std::memcpy(scale, sent.data(), sizeof scale);
  EXPECT_EQ(scale[0], -3);
  EXPECT_EQ(scale[1], 0.5F);
  for (std::size_t i = 0; i < row.size(); ++i) ASSERT_EQ(std::to_integer<std::size_t>(sent[8 + i]), i);
  EXPECT_EQ(through_int8(row, row.size()), row);
}

TEST(Int8Rows, RoundToNearest) {
  const std::vector<float> row{0, 255, 1.4F, 1.6F, 254.4F, 254.6F, 0.4F, 0.6F};
  EXPECT_EQ(through_int8(row, row.size()), (std::vector<float>{0, 255, 1, 2, 254, 255, 0, 1}));
}

TEST(Int8Rows, EqualElementsAreExact) {
  for (const float value : {0.0F, 1.0F / 3, -1e30F, Limits::denorm_min(), Limits::max(), Limits::lowest()}) {
    for (const std::size_t width : {1, 2, 15, 16, 100}) {
      const std::vector<float> row(width, value);
      ASSERT_EQ(through_int8(row, width), row) << value << ' ' << width;
    }
  }
}

// Differences of these rows overflow float32, or steps have no digits in it.
TEST(Int8Rows, ExtremeRowsKeepTheBound) {
  constexpr float kTiny = Limits::denorm_min();
  const std::vector<std::vector<float>> rows{
      {Limits::lowest(), Limits::max(), 0, 1e38F},
      {-1, Limits::max(), 3e38F},
      {Limits::lowest(), -3e38F},
      {Limits::max(), std::nextafter(Limits::max(), 0.0F)},
      {-1e38F, 2e38F, 5e37F},
      {kTiny, 0},
      {-kTiny, kTiny, 0},
      {0, 100 * kTiny, 37 * kTiny},
      {0, 382 * kTiny, 381 * kTiny, 200 * kTiny},
      {0, 700 * kTiny, 699 * kTiny},
      {1e-39F, -1e-38F, 3e-39F},
      {0x1p-100F, 0, 0x1p-101F},
      {0x1p-101F, 0, 0x1p-103F},
      {1.0F, std::nextafter(1.0F, 2.0F)},
      {1e6F, 1e6F + 0.25F, 1e6F - 0.5F},
      {0x1p126F, 0, 1e37F},
      {0x1.1p126F, 0, 1e37F},
  };
  for (const std::vector<float>& row : rows) {
    for (const std::size_t width : {row.size(), std::size_t{67}}) {
      std::vector<float> padded = row;
      padded.resize(width, row.back());
      const std::vector<float> received = through_int8(padded, width);
      expect_within_half_a_step(padded, received.data());
    }
  }
  // Steps of subnormal numbers are rounded up to one of them.
  EXPECT_EQ(through_int8(rows[7], 3), rows[7]);
}

TEST(Int8Rows, ARowThatIsNotFiniteIsReceivedAsNan) {
  for (const float special :
       {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN()}) {
    for (const std::size_t width : {1, 4, 16, 37}) {
      for (const std::size_t at : {std::size_t{0}, width / 2, width - 1}) {
        std::vector<float> values(3 * width);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % width);
        values[width + at] = special;
        const std::vector<float> received = through_int8(values, width);
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (i / width == 1) {
            ASSERT_TRUE(std::isnan(received[i])) << special << ' ' << width << ' ' << at;
          } else {
            ASSERT_NEAR(received[i], values[i], 0.1) << special << ' ' << width << ' ' << at;
          }
        }
      }
    }
  }
}

TEST(Int8Rows, MemoryMayHaveAnyAlignmentAndIsNotExceeded) {
  for (const std::size_t width : {1, 7, 16, 33}) {
    constexpr std::size_t kRows = 3;
    std::vector<float> values(kRows * width);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % width);
    const std::vector<float> expected = through_int8(values, width);
    const std::size_t bytes = values.size() * sizeof(float);
    const std::size_t sent_bytes = kRows * int8_row_bytes(width);
    constexpr std::byte kGuard{0x5A};
    std::vector<std::byte> stored(bytes + 1);
    std::vector<std::byte> sent(sent_bytes + 2, kGuard);
    std::vector<std::byte> received(bytes + 2, kGuard);
    std::memcpy(stored.data() + 1, values.data(), bytes);
    to_int8_rows({reinterpret_cast<const float*>(stored.data() + 1), values.size()}, width, sent.data() + 1);
    from_int8_rows({sent.data() + 1, sent_bytes}, width, reinterpret_cast<float*>(received.data() + 1));
    std::vector<float> found(values.size());
    std::memcpy(found.data(), received.data() + 1, bytes);
    EXPECT_EQ(found, expected) << width;
    for (const auto& memory : {sent, received}) {
      EXPECT_EQ(memory.front(), kGuard) << width;
      EXPECT_EQ(memory.back(), kGuard) << width;
    }
  }
}

}  // namespace
}  // namespace capstan::protocol
