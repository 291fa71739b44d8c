// launcher_rank_test.cpp -- the rank from the variable of each launcher.
#include "launch/launcher_rank.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace capstan::launch {
namespace {

class LauncherRank : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
  static constexpr const char* kNames[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
};

TEST_F(LauncherRank, IsZeroWithoutALauncher) { EXPECT_EQ(launcher_rank(), 0); }

TEST_F(LauncherRank, ReadsEachLaunchersVariable) {
  for (const char* name : kNames) {
    ASSERT_EQ(::setenv(name, "3", 1), 0);
    EXPECT_EQ(launcher_rank(), 3) << name;
    ::unsetenv(name);
  }
}

TEST_F(LauncherRank, PrefersMpirunOverSlurm) {
  ::setenv("SLURM_PROCID", "0", 1);
  ::setenv("OMPI_COMM_WORLD_RANK", "5", 1);
  EXPECT_EQ(launcher_rank(), 5);
}

TEST_F(LauncherRank, IgnoresMalformedRanks) {
  for (const char* text : {"", "x", "-1", "3x"}) {
    ::setenv("PMI_RANK", text, 1);
    ::setenv("PMIX_RANK", "2", 1);
    EXPECT_EQ(launcher_rank(), 2) << text;
  }
}

}  // namespace
}  // namespace capstan::launch
