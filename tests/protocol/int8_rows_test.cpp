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

TEST(Int8Rows, FormatIsMinimumMaximumAndBytes) {
  std::vector<float> row(256);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = -3 + 0.5F * static_cast<float>(i);  // 255 steps
  const std::vector<std::byte> sent = int8_of(row, row.size());
  ASSERT_EQ(sent.size(), 8 + row.size());
  float scale[2];
  std::memcpy(scale, sent.data(), sizeof scale);
  EXPECT_EQ(scale[0], -3);
  EXPECT_EQ(scale[1], 124.5F);
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

/// Rows of random elements around `offset`, which may be much larger than the elements.
std::vector<float> random_rows(std::size_t count, float offset, float range) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(0, range);
  std::vector<float> values(count);
  for (float& value : values) value = offset + uniform(random);
  return values;
}

// A restored shard must have the values of the saved one. The last rows have steps below the spacing of
// float32 numbers, which changes at a power of two.
TEST(Int8Rows, ConvertedRowsStayTheSameWhenConvertedAgain) {
  for (const float range : {1.0F, 3e38F, 1e-3F, 1e-5F, 2e-5F, 4e-7F, 1e-37F, 1e-42F}) {
    for (const float offset : {0.0F, -0.3F, 1.0F, -1.0F, 0.99999F, -1.00001F, 100.0F}) {
      constexpr std::size_t kWidth = 40;
      const std::vector<float> once = through_int8(random_rows(500 * kWidth, offset, range), kWidth);
      ASSERT_EQ(through_int8(once, kWidth), once) << offset << ' ' << range;
    }
  }
}

// An update without gradient must not change elements. Rows of five elements are padded to a vector.
TEST(Int8Rows, ConvertedRowsStayTheSameWhenRoundedStochastically) {
  constexpr std::uint64_t kSeeds = 100, kRows = 20;
  for (const std::size_t width : {5, 40}) {
    for (const float range : {1.0F, 3e38F, 1e-3F, 1e-4F, 1e-5F, 2e-5F, 4e-7F, 1e-37F, 1e-42F}) {
      for (const float offset : {0.0F, -0.3F, 1.0F, -1.0F, 0.99999F, -1.00001F, 100.0F}) {
        const std::vector<float> once = through_int8(random_rows(kRows * width, offset, range), width);
        for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
          std::vector<std::byte> again(kRows * int8_row_bytes(width));
          for (std::uint64_t row = 0; row < kRows; ++row) {
            to_int8_row(std::span(once).subspan(row * width, width), {true, seed}, row * width,
                        again.data() + row * int8_row_bytes(width));
          }
          std::vector<float> received(once.size());
          from_int8_rows(again, width, received.data());
          ASSERT_EQ(received, once) << width << ' ' << offset << ' ' << range << ' ' << seed;
        }
      }
    }
  }
}

TEST(Int8Rows, PartsAreThoseOfTheCompleteRow) {
  constexpr std::size_t kWidth = 70;
  for (const float offset : {0.0F, 1e6F}) {  // the second row is converted in double
    const std::vector<float> row = random_rows(kWidth, offset, 1);
    const std::vector<std::byte> sent = int8_of(row, kWidth);
    const std::vector<float> all = through_int8(row, kWidth);
    for (std::size_t first = 0; first < kWidth; ++first) {
      for (std::size_t count = 1; first + count <= kWidth; ++count) {
        std::vector<float> part(count + 1, -7.0F);
        from_int8_row(sent, first, std::span(part).first(count));
        ASSERT_TRUE(
            std::equal(part.begin(), part.end() - 1, all.begin() + static_cast<std::ptrdiff_t>(first)));
        ASSERT_EQ(part.back(), -7.0F);
      }
    }
  }
}

TEST(Int8Rows, ExtremesAreExact) {
  const std::vector<float> row{0.1F, -0.7F, 1.0F / 3, 12345.678F, 5};
  for (const bool stochastic : {false, true}) {
    std::vector<std::byte> sent(int8_row_bytes(row.size()));
    to_int8_row(row, {stochastic, 5}, 0, sent.data());
    std::vector<float> received(row.size());
    from_int8_rows(sent, row.size(), received.data());
    EXPECT_EQ(received[1], row[1]);
    EXPECT_EQ(received[3], row[3]);
  }
}

// The sum over many seeds has a binomial distribution; six standard deviations are allowed.
TEST(Int8Rows, StochasticRoundingIsUnbiased) {
  constexpr int kSeeds = 20000;
  // The second row is converted in double: its range is a small share of its magnitude.
  for (const std::vector<float>& row : {std::vector<float>{0, 255, 17.25F, 100.5F, 3, 254.9F, 0.1F},
                                        {0x1p20F, 0x1p20F + 127.5F, 0x1p20F + 3.625F}}) {
    std::vector<double> sums(row.size());
    std::vector<std::byte> sent(int8_row_bytes(row.size()));
    std::vector<float> received(row.size());
    const double step = (static_cast<double>(row[1]) - static_cast<double>(row[0])) / 255;
    for (int seed = 0; seed < kSeeds; ++seed) {
      to_int8_row(row, {true, static_cast<std::uint64_t>(seed) * 0x9E37'79B9'7F4A'7C15U}, 11, sent.data());
      from_int8_rows(sent, row.size(), received.data());
      for (std::size_t i = 0; i < row.size(); ++i) {
        const double error = static_cast<double>(received[i]) - static_cast<double>(row[i]);
        ASSERT_LT(std::abs(error), step * 1.001);
        sums[i] += error;
      }
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double steps = (static_cast<double>(row[i]) - static_cast<double>(row[0])) / step;
      const double share = steps - std::floor(steps);
      const double deviation = step * std::sqrt(share * (1 - share) / kSeeds);
      EXPECT_LE(std::abs(sums[i] / kSeeds), 6 * deviation + step * 1e-4) << "element " << i;
    }
  }
}

TEST(Int8Rows, RandomBitsDependOnSeedAndElement) {
  const std::vector<float> row = random_rows(64, 0, 1);
  const auto converted = [&](std::uint64_t seed, std::uint64_t first) {
    std::vector<std::byte> sent(int8_row_bytes(row.size()));
    to_int8_row(row, {true, seed}, first, sent.data());
    return sent;
  };
  EXPECT_EQ(converted(1, 2), converted(1, 2));
  EXPECT_NE(converted(1, 2), converted(2, 2));
  EXPECT_NE(converted(1, 2), converted(1, 3));
  EXPECT_NE(converted(1, 2), int8_of(row, row.size()));
}

TEST(Int8Rows, GatherConvertsRowsInTheOrderGiven) {
  for (const std::size_t width : {3, 16, 37}) {
    const std::vector<float> rows = random_rows(50 * width, -1, 2);
    const std::vector<float> all = through_int8(rows, width);
    const std::vector<std::byte> table = int8_of(rows, width);
    const std::vector<std::uint32_t> numbers{49, 0, 7, 7, 30};
    std::vector<float> found(numbers.size() * width);
    gather_int8_rows(table.data(), width, numbers, found.data());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (std::size_t j = 0; j < width; ++j) ASSERT_EQ(found[i * width + j], all[numbers[i] * width + j]);
    }
  }
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
