// initialize_test.cpp -- distribution of initial values, and their independence from sharding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ps/shard/initialize.hpp"
#include "ps/shard/philox.hpp"

namespace capstan::ps {
namespace {

std::vector<float> values(const Initializer& init, std::uint64_t first, std::uint64_t count) {
  std::vector<float> out(count);
  initialize(init, DType::float32, first, count, out.data());
  return out;
}

TEST(Philox, MatchesTheKnownAnswers) {
  // From the authors' Random123 distribution, kat_vectors, philox4x32 10.
  EXPECT_EQ(philox4x32(0, 0), (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint64_t all = ~std::uint64_t{0};
  EXPECT_EQ(philox4x32(all, all, all),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Initialize, ElementDependsOnlyOnItsIndex) {
  for (const Initializer& init : {initializers::normal(1, 2, 7), initializers::uniform(-1, 1, 7)}) {
    const auto whole = values(init, 0, 1001);
    for (const std::uint64_t first : {0, 1, 2, 333, 500, 999}) {
      const auto part = values(init, first, 1001 - first);
      for (std::size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], whole[first + i]) << first << " " << i;
    }
  }
}

TEST(Initialize, NormalHasItsMeanAndVarianceAndNoCorrelation) {
  const auto x = values(initializers::normal(3, 0.5, 42), 0, 1'000'000);
  double sum = 0, square = 0, cross = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = (static_cast<double>(x[i]) - 3) / 0.5;
    sum += d;
    square += d * d;
    if (i > 0) cross += d * (static_cast<double>(x[i - 1]) - 3) / 0.5;
  }
  EXPECT_NEAR(sum / 1e6, 0, 0.005);
  EXPECT_NEAR(square / 1e6, 1, 0.005);
  EXPECT_NEAR(cross / 1e6, 0, 0.005);
}

TEST(Initialize, SeedsAreDifferentStreams) {
  const auto a = values(initializers::normal(0, 1, 1), 0, 100'000);
  const auto b = values(initializers::normal(0, 1, 2), 0, 100'000);
  double cross = 0;
  for (std::size_t i = 0; i < a.size(); ++i) cross += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  EXPECT_NEAR(cross / 1e5, 0, 0.015);
}

TEST(Initialize, ConstantFillsIntegersAndFloats) {
  std::vector<std::int64_t> whole(3);
  initialize(initializers::constant(-4), DType::int64, 0, 3, whole.data());
  EXPECT_EQ(whole, (std::vector<std::int64_t>{-4, -4, -4}));
  std::vector<double> real(2);
  initialize(initializers::constant(0.25), DType::float64, 0, 2, real.data());
  EXPECT_EQ(real, (std::vector<double>{0.25, 0.25}));
}

TEST(Initialize, TruncatedNormalStaysWithinTwoAndHasItsVariance) {
  std::vector<double> x(200'000);
  initialize(initializers::truncated_normal(0, 1, 9), DType::float64, 0, x.size(), x.data());
  double sum = 0, square = 0;
  for (const double value : x) {
    ASSERT_LE(std::fabs(value), 2);
    sum += value;
    square += value * value;
  }
  EXPECT_NEAR(sum / 2e5, 0, 0.01);
  EXPECT_NEAR(square / 2e5, 0.774, 0.01);  // 1 - 2 * 2 phi(2) / (2 Phi(2) - 1)
}

TEST(Initialize, OrthogonalRowsOrColumnsAreOrthonormal) {
  for (const auto& [rows, columns] : {std::pair(20, 6), std::pair(6, 20), std::pair(9, 9)}) {
    const auto r = static_cast<std::uint64_t>(rows), c = static_cast<std::uint64_t>(columns);
    std::vector<double> matrix(r * c), part(2 * c);
    initialize(initializers::orthogonal(3, 4), DType::float64, {r, c}, 0, r, matrix.data());
    const bool tall = rows >= columns;
    const std::uint64_t vectors = std::min(r, c), length = std::max(r, c);
    const auto at = [&](std::uint64_t k, std::uint64_t i) {
      return tall ? matrix[i * c + k] : matrix[k * c + i];
    };
    for (std::uint64_t a = 0; a < vectors; ++a) {
      for (std::uint64_t b = 0; b <= a; ++b) {
        double product = 0;
        for (std::uint64_t i = 0; i < length; ++i) product += at(a, i) * at(b, i);
        EXPECT_NEAR(product, a == b ? 9 : 0, 1e-12);
      }
    }
    initialize(initializers::orthogonal(3, 4), DType::float64, {r, c}, 3, 2, part.data());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), matrix.begin() + 3 * columns));
  }
}

TEST(Initialize, IdentityFillsEveryType) {
  for (const DType dtype : kDTypes) {
    std::vector<std::byte> out(6 * size_of(dtype));
    initialize(initializers::identity(2), dtype, {2, 3}, 0, 2, out.data());
    const double expected[] = {2, 0, 0, 0, 2, 0};
    for (std::size_t i = 0; i < 6; ++i) {
      double value = 0;
      const std::byte* at = out.data() + i * size_of(dtype);
      std::uint16_t half = 0;
      std::memcpy(&half, at, std::min<std::size_t>(2, size_of(dtype)));
      switch (dtype) {
        case DType::float32: {
          float x = 0;
          std::memcpy(&x, at, 4);
          value = static_cast<double>(x);
          break;
        }
        case DType::float64:
          std::memcpy(&value, at, 8);
          break;
        case DType::int32:
        case DType::int64:
          value = static_cast<double>(std::to_integer<int>(*at));
          break;
        case DType::float16:
          value = static_cast<double>(static_cast<float>(float16::from_bits(half)));
          break;
        case DType::bfloat16:
          value = static_cast<double>(static_cast<float>(bfloat16::from_bits(half)));
          break;
        case DType::boolean:
          value = 2 * std::to_integer<int>(*at);
          break;
      }
      EXPECT_EQ(value, expected[i]) << to_string(dtype) << " " << i;
    }
  }
}

}  // namespace
}  // namespace capstan::ps
