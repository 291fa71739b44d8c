// packed_names_test.cpp -- names survive packing, and unknown names get suggestions.
#include "train/packed_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capstan::train {
namespace {

using Names = std::vector<std::string>;

TEST(PackedNames, SurvivePacking) {
  for (const Names& names : {Names{}, Names{"a"}, Names{"seven77", "x"}, Names{"eight888", "größer", " b "},
                             Names(1000, "a name that takes more than one element")}) {
    EXPECT_EQ(unpack_names(pack_names(names)), names);
  }
}

TEST(PackedNames, TakeEightBytesPerElement) {
  EXPECT_EQ(pack_names(Names{"1234567"}).size(), 1U);
  EXPECT_EQ(pack_names(Names{"12345678"}).size(), 2U);
}

TEST(PackedNames, SuggestNamesThatContainTheGivenOne) {
  const Names names{"blue_whale.n.01", "whale.n.02", "whaler.n.01", "dog.n.01"};
  EXPECT_THAT(near_names("whale", names, 2), testing::ElementsAre("whale.n.02", "whaler.n.01"));
  EXPECT_THAT(near_names("whale", names, 9), testing::SizeIs(3));
}

TEST(PackedNames, SuggestTheNearestSpelling) {
  const Names names{"hypernym", "meronym", "entails"};
  EXPECT_THAT(near_names("hypernim", names, 3), testing::ElementsAre("hypernym"));
  EXPECT_THAT(near_names("xyzzyxyzzy", names, 3), testing::IsEmpty());
  EXPECT_THAT(near_names("", names, 3), testing::IsEmpty());
}

}  // namespace
}  // namespace capstan::train
