// units_test.cpp -- counts, sizes, rates and times as they are printed.
#include "launch/units.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace capstan::launch {
namespace {

using namespace std::chrono_literals;

TEST(Units, CountsHaveThreeDigitsAndAPrefix) {
  const std::vector<std::pair<double, std::string>> counts{
      {0, "0"},           {0.25, "0.25"},         {16, "16"},          {950, "950"},      {999.6, "1.00 k"},
      {21'400, "21.4 k"}, {999'499, "999 k"},     {999'960, "1.00 M"}, {4.4e6, "4.40 M"}, {2.5e9, "2.50 G"},
      {-1500, "-1.50 k"}, {98'000'000, "98.0 M"}, {3e12, "3.00 T"},    {9e21, "9000 E"}};
  for (const auto& [count, text] : counts) EXPECT_EQ(short_count(count), text);
}

TEST(Units, SizesAndRates) {
  EXPECT_EQ(size_text(950), "950 B");
  EXPECT_EQ(size_text(67'108'864), "67.1 MB");
  EXPECT_EQ(size_text(1000), "1.00 kB");
  EXPECT_EQ(rate_text(4.4e6, "examples"), "4.40 M examples/s");
  EXPECT_EQ(rate_text(100, "triples"), "100 triples/s");
  EXPECT_EQ(rate_text(1e9, "B"), "1.00 GB/s");
}

TEST(Units, Times) {
  const std::vector<std::pair<std::chrono::milliseconds, std::string>> times{
      {0ms, "0.0 s"},     {3'240ms, "3.2 s"},      {59'949ms, "59.9 s"}, {59'950ms, "1:00 min"},
      {245s, "4:05 min"}, {3'599'600ms, "1:00 h"}, {3'600s, "1:00 h"},   {150min, "2:30 h"}};
  for (const auto& [time, text] : times) EXPECT_EQ(short_time(time), text);
  const std::vector<std::pair<double, std::string>> seconds{
      {0, "0 us"},      {1.28e-6, "1.28 us"}, {5.2e-4, "520 us"}, {0.001, "1 ms"},
      {0.25, "250 ms"}, {1.5, "1.5 s"},       {90, "1:30 min"}};
  for (const auto& [time, text] : seconds) EXPECT_EQ(seconds_text(time), text);
}

}  // namespace
}  // namespace capstan::launch
