// admission_filter_test.cpp -- counts are never too small for recent keys, and rarely too large.
#include "ps/shard/admission_filter.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "protocol/table_layout.hpp"

namespace capstan::ps {
namespace {

class AdmissionFilterTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kLines = 1024, kKeys = kLines * protocol::kKeysPerFilterLine;
  std::uint32_t count(std::int64_t key) { return filter_.count(protocol::hash_of(key)); }

  struct alignas(64) Line {
    std::byte bytes[protocol::kFilterLineBytes];
  };
  std::vector<Line> memory_ = std::vector<Line>(kLines);
  std::uint64_t occurrences_ = 0;
  AdmissionFilter filter_{memory_.front().bytes, kLines, occurrences_};
};

TEST_F(AdmissionFilterTest, CountsTheOccurrencesOfAKey) {
  for (std::uint32_t times = 1; times <= protocol::kMaxAdmitAfter; ++times) EXPECT_EQ(count(7), times);
  EXPECT_EQ(count(7), protocol::kMaxAdmitAfter);
  EXPECT_EQ(count(8), 1U);
}

// Half of the occurrences are of keys that occur once. The other half are of keys that occur four times
// within kKeys / 8 occurrences.
TEST_F(AdmissionFilterTest, IsRarelyTooLargeAndNeverTooSmallForRecentKeys) {
  std::int64_t once = 0, early = 0, new_keys = 0;
  for (std::int64_t round = 0; round < 40; ++round) {
    for (std::uint32_t time = 1; time <= 4; ++time) {
      for (std::uint64_t i = 0; i < kKeys / 64; ++i) {
        const auto key = -1 - static_cast<std::int64_t>(i) - round * static_cast<std::int64_t>(kKeys);
        const std::uint32_t counted = count(key);
        if (time == 1) early += counted > 1 ? 1 : 0;
        EXPECT_GE(counted, (time - 1) / 2 + 1) << "the line of a key is halved at most once per round";
        early += count(once++) > 1 ? 1 : 0;
      }
      new_keys += static_cast<std::int64_t>(kKeys) / 64 * (time == 1 ? 2 : 1);
    }
  }
  EXPECT_LT(early, new_keys * 2 / 100) << "of " << new_keys;
}

TEST_F(AdmissionFilterTest, ForgetsKeysThatOccurRarely) {
  EXPECT_EQ(count(-1), 1U);
  for (std::uint64_t key = 0; key < 2 * kKeys; ++key) (void)count(static_cast<std::int64_t>(key));
  std::uint32_t remembered = 0;
  for (std::int64_t key = 0; key < 1000; ++key) remembered += count(key) > 1 ? 1 : 0;
  EXPECT_LT(remembered, 60U);
}

}  // namespace
}  // namespace capstan::ps
