// store_choice_test.cpp -- when entries of a ring are written by non-temporal stores.
#include "client/channel/store_choice.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace capstan::client {
namespace {

constexpr std::uint64_t kEntryBytes = 60000;

/// Writes entries that take `ordinary` or `streamed` seconds. Returns how many of them were streamed.
int streamed_of(StoreChoice& choice, std::uint64_t entries, double ordinary, double streamed) {
  int count = 0;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const bool streams = choice.next();
    count += streams ? 1 : 0;
    choice.note(kEntryBytes, StoreChoice::Duration(streams ? streamed : ordinary));
  }
  return count;
}

TEST(StoreChoiceTest, UsesOrdinaryStoresWithinACache) {
  StoreChoice choice;
  EXPECT_EQ(streamed_of(choice, StoreChoice::kFirst, 2, 1), 0);
  EXPECT_EQ(streamed_of(choice, 1, 2, 1), 1);
  EXPECT_EQ(streamed_of(choice, StoreChoice::kPeriod - 1, 2, 1), 0);
  EXPECT_EQ(streamed_of(choice, 10 * StoreChoice::kPeriod, 2, 1), 10);
}

TEST(StoreChoiceTest, StreamsBetweenDistantCores) {
  StoreChoice choice;
  EXPECT_EQ(streamed_of(choice, StoreChoice::kFirst + 1, 10, 1), 1);
  const auto entries = static_cast<int>(10 * StoreChoice::kPeriod);
  EXPECT_EQ(streamed_of(choice, 10 * StoreChoice::kPeriod, 10, 1), entries - 10);
}

TEST(StoreChoiceTest, ChangesWhenAProcessMigrates) {
  StoreChoice choice;
  streamed_of(choice, StoreChoice::kFirst + 1, 10, 1);
  streamed_of(choice, StoreChoice::kPeriod, 2, 1);
  EXPECT_EQ(streamed_of(choice, StoreChoice::kPeriod - 2, 2, 1), 0);
  streamed_of(choice, 2, 10, 1);  // the last ordinary entry of the period, and a streamed one
  EXPECT_EQ(streamed_of(choice, StoreChoice::kPeriod - 1, 10, 1), static_cast<int>(StoreChoice::kPeriod - 1));
}

TEST(StoreChoiceTest, ComparesTimesPerByte) {
  StoreChoice choice;
  streamed_of(choice, StoreChoice::kFirst, 10, 1);
  ASSERT_TRUE(choice.next());
  choice.note(kEntryBytes / 4, StoreChoice::Duration(1));  // as long per entry, but of a quarter of the size
  EXPECT_FALSE(choice.next());
}

TEST(StoreChoiceTest, TimesLargeEntriesOnly) {
  StoreChoice choice;
  for (std::uint64_t i = 0; i < 10 * StoreChoice::kPeriod; ++i) {
    choice.write(StoreChoice::kLargeBytes - 64, [](bool streaming) { EXPECT_FALSE(streaming); });
  }
  std::vector<std::uint64_t> streamed;
  for (std::uint64_t i = 0; i <= StoreChoice::kFirst; ++i) {
    choice.write(StoreChoice::kLargeBytes, [&](bool streaming) {
      if (streaming) streamed.push_back(i);
    });
  }
  EXPECT_EQ(streamed, std::vector<std::uint64_t>{StoreChoice::kFirst});
}

}  // namespace
}  // namespace capstan::client
