// divider_test.cpp -- Divider compared with operator/.
#include "gpu/divider.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace capstan::gpu {
namespace {

constexpr std::uint32_t kLast = (std::uint32_t{1} << 31) - 1;

void check(const Divider& divide, std::uint32_t number) {
  const auto [quotient, remainder] = divide(number);
  ASSERT_EQ(quotient, number / divide.divisor()) << number << " / " << divide.divisor();
  ASSERT_EQ(remainder, number % divide.divisor()) << number << " / " << divide.divisor();
}

TEST(Divider, AgreesWithDivision) {
  std::mt19937 random(1);
  std::vector<std::uint32_t> divisors{kLast,          kLast - 1, 1U << 30, (1U << 30) + 1,
                                      (1U << 30) - 1, 641,       65535,    65537};
  for (std::uint32_t divisor = 1; divisor <= 300; ++divisor) divisors.push_back(divisor);
  for (int i = 0; i < 300; ++i) divisors.push_back(1 + random() % kLast);
  for (const std::uint32_t divisor : divisors) {
    const Divider divide(divisor);
    for (std::uint64_t multiple = 0; multiple <= kLast;
         multiple += std::max<std::uint64_t>(divisor, kLast / 50)) {
      const std::uint64_t near = multiple / divisor * divisor;
      for (std::uint64_t number = near > 0 ? near - 1 : 0; number <= near + 1 && number <= kLast; ++number) {
        check(divide, static_cast<std::uint32_t>(number));
      }
    }
    for (std::uint32_t number = kLast - 2; number <= kLast; ++number) check(divide, number);
    for (int i = 0; i < 200; ++i) check(divide, random() % (kLast + 1));
  }
}

}  // namespace
}  // namespace capstan::gpu
