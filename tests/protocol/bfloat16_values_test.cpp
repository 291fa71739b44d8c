// bfloat16_values_test.cpp -- vectors convert exactly as the scalar type, for every kind of number.
#include "protocol/bfloat16_values.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

}  // namespace
}  // namespace capstan::protocol
