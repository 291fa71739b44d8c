// file_limit_test.cpp -- raises the limit of open files if necessary, up to the hard limit.
#include "cluster/supervisor/file_limit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/log.hpp"

namespace capstan::cluster {
namespace {

class FileLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    log::set_rank_tag("ps 0@here");
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &first_), 0);
    if (first_.rlim_max < 1000) GTEST_SKIP() << "the hard limit is " << first_.rlim_max;
    set(256);
  }
  void TearDown() override { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &first_), 0); }

  void set(rlim_t limit) const {
    const rlimit both{limit, first_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &both), 0);
  }
  static rlim_t limit() {
    rlimit now{};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
    return now.rlim_cur;
  }
  rlimit first_{};
};

TEST_F(FileLimitTest, FewConnectionsDoNotChangeTheLimit) {
  raise_file_limit_for(50);
  EXPECT_EQ(limit(), 256U);
}

TEST_F(FileLimitTest, ManyConnectionsRaiseTheLimit) {
  raise_file_limit_for(700);
  EXPECT_GE(limit(), 700U);
  const rlim_t raised = limit();
  raise_file_limit_for(60);
  EXPECT_EQ(limit(), raised) << "the limit must not be lowered";
}

TEST_F(FileLimitTest, RaisesToTheHardLimitAndWarnsIfItIsTooLow) {
  testing::internal::CaptureStderr();
  raise_file_limit_for(first_.rlim_max);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("raise it (ulimit -n)"));
  EXPECT_EQ(limit(), first_.rlim_max);
}

}  // namespace
}  // namespace capstan::cluster
