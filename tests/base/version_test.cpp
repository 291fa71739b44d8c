// version_test.cpp -- the macros, the constant and the function agree on the version.
#include "capstan/version.hpp"

#include <gtest/gtest.h>

namespace capstan {
namespace {

TEST(Version, LibraryHasTheVersionOfItsHeaders) {
  EXPECT_EQ(version(), kHeaderVersion);
  EXPECT_EQ(to_string(version()), CAPSTAN_VERSION_STRING);
}

TEST(Version, OrdersByMajorThenMinorThenPatch) {
  EXPECT_LT((Version{0, 9, 9}), (Version{1, 0, 0}));
  EXPECT_LT((Version{1, 2, 9}), (Version{1, 3, 0}));
  EXPECT_LT((Version{1, 2, 3}), (Version{1, 2, 4}));
}

TEST(Version, MacroIsOneComparableNumber) {
  EXPECT_EQ(CAPSTAN_VERSION,
            kHeaderVersion.major * 10000 + kHeaderVersion.minor * 100 + kHeaderVersion.patch);
}

}  // namespace
}  // namespace capstan
