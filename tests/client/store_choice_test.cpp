// store_choice_test.cpp -- when entries of a ring are written by non-temporal stores.
#include "client/channel/store_choice.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace capstan::client {
namespace {

constexpr std::uint64_t kEntryBytes = 60000;
constexpr std::uint64_t kRest =
    StoreChoice::kPeriod - StoreChoice::kSamples;  // entries with the chosen stores

/// Writes entries that take `ordinary` or `streamed` seconds. Returns how many of them were streamed.
std::uint64_t streamed_of(StoreChoice& choice, std::uint64_t entries, double ordinary, double streamed) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const bool streams = choice.streams();
    count += streams ? 1 : 0;
    choice.note(kEntryBytes, StoreChoice::Duration(streams ? streamed : ordinary));
  }
  return count;
}

TEST(StoreChoiceTest, UsesOrdinaryStoresWithinACache) {
  StoreChoice choice;
  EXPECT_EQ(streamed_of(choice, StoreChoice::kFirst, 2, 1), StoreChoice::kSamples);
  EXPECT_EQ(streamed_of(choice, kRest, 2, 1), 0U);
  EXPECT_EQ(streamed_of(choice, StoreChoice::kSamples, 2, 1), StoreChoice::kSamples);
}

TEST(StoreChoiceTest, StreamsBetweenDistantCores) {
  StoreChoice choice;
  EXPECT_EQ(streamed_of(choice, StoreChoice::kFirst, 10, 1), StoreChoice::kSamples);
  EXPECT_EQ(streamed_of(choice, kRest, 10, 1), kRest);
  EXPECT_EQ(streamed_of(choice, StoreChoice::kSamples, 10, 1), 0U);
  EXPECT_EQ(streamed_of(choice, kRest, 10, 1), kRest);
}

TEST(StoreChoiceTest, ChangesWhenAProcessMigrates) {
  StoreChoice choice;
  streamed_of(choice, StoreChoice::kFirst, 10, 1);
  streamed_of(choice, StoreChoice::kPeriod, 2, 1);
  EXPECT_EQ(streamed_of(choice, kRest, 2, 1), 0U);
  streamed_of(choice, StoreChoice::kSamples, 2, 1);
  streamed_of(choice, StoreChoice::kPeriod, 10, 1);
  EXPECT_EQ(streamed_of(choice, kRest, 10, 1), kRest);
}

TEST(StoreChoiceTest, IgnoresOneSlowSample) {
  StoreChoice choice;
  streamed_of(choice, StoreChoice::kFirst - 2 * StoreChoice::kSamples, 2, 1);
  streamed_of(choice, 1, 1000, 1);  // the thread has lost its core
  streamed_of(choice, 2 * StoreChoice::kSamples - 1, 2, 1);
  EXPECT_EQ(streamed_of(choice, kRest, 2, 1), 0U);
}

TEST(StoreChoiceTest, ComparesTimesPerByte) {
  StoreChoice choice;
  streamed_of(choice, StoreChoice::kFirst - StoreChoice::kSamples, 10, 1);
  // A tenth of the time for a quarter of the bytes: 2.5 times as fast.
  while (choice.streams()) choice.note(kEntryBytes / 4, StoreChoice::Duration(1));
  EXPECT_EQ(streamed_of(choice, kRest, 10, 1), 0U);
}

TEST(StoreChoiceTest, TimesLargeEntriesOnly) {
  StoreChoice choice;
  for (std::uint64_t i = 0; i < 10 * StoreChoice::kPeriod; ++i) {
    choice.write(StoreChoice::kLargeBytes - 64, [](bool streaming) { EXPECT_FALSE(streaming); });
  }
  std::vector<std::uint64_t> streamed;
  for (std::uint64_t i = 0; i < StoreChoice::kFirst; ++i) {
    choice.write(StoreChoice::kLargeBytes, [&](bool streaming) {
      if (streaming) streamed.push_back(i);
    });
  }
  EXPECT_EQ(streamed, (std::vector<std::uint64_t>{StoreChoice::kFirst - 2, StoreChoice::kFirst - 1}));
}

}  // namespace
}  // namespace capstan::client
