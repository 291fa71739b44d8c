// log_test.cpp -- the log file that is written in addition to standard error: levels, content and errors.
// Tests: src/base/log_file.cpp
// Tests: src/base/open_to_append.cpp
#include "base/log.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace capstan {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class LogToFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "capstan-log-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    log::set_level("warn");
    log::set_rank_tag("worker 1@node17");
  }
  void TearDown() override {
    log::set_level("info");
    log::also_to("/dev/null", 0);
    std::filesystem::remove_all(directory_);
  }
  std::filesystem::path file() const { return directory_ / "run" / "log" / "rank-00003.log"; }
  std::vector<std::string> lines() const {
    std::ifstream in(file());
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

  std::filesystem::path directory_;
};

TEST_F(LogToFile, HasLinesOfLevelInfoAndAbove) {
  log::also_to(file(), 3);
  testing::internal::CaptureStderr();
  log::debug("for neither");
  log::info("for the file");
  log::warn("for both");
  const std::string console = testing::internal::GetCapturedStderr();
  EXPECT_THAT(console, HasSubstr("[worker 1@node17] [warning] for both\n"));
  EXPECT_THAT(console, Not(HasSubstr("for the file")));
  const auto found = lines();
  ASSERT_EQ(found.size(), 3U);
  const std::string head = R"(\[20..-..-.. ..:..:..\....\] \[rank 3\] \[worker 1@node17\] )";
  EXPECT_THAT(found[0], MatchesRegex(head + R"(\[info\] process )" + std::to_string(getpid()) + " started"));
  EXPECT_THAT(found[1], MatchesRegex(head + R"(\[info\] for the file)"));
  EXPECT_THAT(found[2], MatchesRegex(head + R"(\[warning\] for both)"));
}

TEST_F(LogToFile, UsesTheLevelOfStandardErrorIfThatIsLower) {
  log::also_to(file(), 3);
  log::set_level("debug");
  testing::internal::CaptureStderr();
  log::debug("for both");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("for both"));
  EXPECT_THAT(lines().back(), HasSubstr("[debug] for both"));
}

TEST_F(LogToFile, AppendsToAnExistingFile) {
  log::also_to(file(), 3);
  log::info("from the first");
  log::also_to(file(), 3);
  log::info("from the second");
  const auto found = lines();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_THAT(found[1], HasSubstr("from the first"));
  EXPECT_THAT(found[3], HasSubstr("from the second"));
}

TEST_F(LogToFile, LinesOfConcurrentThreadsDoNotMix) {
  log::also_to(file(), 3);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([i] {
        log::set_rank_tag("thread");
        for (int line = 0; line < 100; ++line) log::info("thread {}, line {:>60}", i, line);
      });
    }
  }
  const auto found = lines();
  EXPECT_EQ(found.size(), 401U);
  for (const std::string& line : found) EXPECT_THAT(line, HasSubstr("] [rank 3] ["));
}

TEST_F(LogToFile, WarnsOnceIfTheDirectoryCannotBeCreated) {
  std::ofstream(directory_ / "run") << "a file in place of the directory";
  testing::internal::CaptureStderr();
  log::also_to(file(), 3);
  log::info("dropped");
  log::error("on the console");
  const std::string console = testing::internal::GetCapturedStderr();
  EXPECT_THAT(console, HasSubstr("rank-00003.log: open: Not a directory"));
  EXPECT_EQ(console.find("rank-00003.log"), console.rfind("rank-00003.log"));
  EXPECT_THAT(console, HasSubstr("[error] on the console"));
}

/// Tests each kind of file that another user could have planted in place of the log file.
TEST_F(LogToFile, DoesNotFollowLinksPlantedByOtherUsers) {
  const std::filesystem::path victim = directory_ / "victim";
  const auto expect_rejected = [&](const char* kind) {
    std::ofstream(victim) << "text";
    testing::internal::CaptureStderr();
    log::also_to(file(), 3);
    log::info("dropped");
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(file().string() + ": open: ")) << kind;
    EXPECT_EQ(std::filesystem::file_size(victim), 4U) << kind;
  };
  std::filesystem::create_directories(file().parent_path());
  std::filesystem::create_symlink(victim, file());
  expect_rejected("a link");
  std::filesystem::remove(file());
  std::filesystem::create_symlink(directory_ / "new", file());
  expect_rejected("a dangling link");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  std::filesystem::remove(file());
  std::filesystem::create_hard_link(victim, file());
  expect_rejected("a hard link");
  std::filesystem::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  expect_rejected("a pipe");
}

TEST_F(LogToFile, FollowsOnlyDirectoryLinksOfItsOwnUser) {
  std::filesystem::create_directories(directory_ / "elsewhere");
  std::filesystem::create_directories(file().parent_path().parent_path());
  std::filesystem::create_directory_symlink(directory_ / "elsewhere", file().parent_path());
  log::also_to(file(), 3);
  EXPECT_EQ(lines().size(), 1U);
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change owners";
  ASSERT_EQ(lchown(file().parent_path().c_str(), 4711, 4711), 0);
  testing::internal::CaptureStderr();
  log::also_to(file(), 3);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(file().string() + ": open: "));
  std::filesystem::remove(file().parent_path());
  std::filesystem::create_directories(file().parent_path());
  std::ofstream(file()) << "another user's";
  ASSERT_EQ(chown(file().c_str(), 4711, 4711), 0);
  testing::internal::CaptureStderr();
  log::also_to(file(), 3);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(file().string() + ": open: "));
  EXPECT_EQ(lines().size(), 1U);
}

TEST_F(LogToFile, WarnsOnceIfTheDiskIsFull) {
  testing::internal::CaptureStderr();
  log::also_to("/dev/full", 3);
  for (int i = 0; i < 10; ++i) log::info("dropped");
  log::error("on the console");
  const std::string console = testing::internal::GetCapturedStderr();
  EXPECT_THAT(console, HasSubstr("/dev/full: write: No space left on device"));
  EXPECT_EQ(console.find("/dev/full"), console.rfind("/dev/full"));
  EXPECT_THAT(console, HasSubstr("[error] on the console"));
}

}  // namespace
}  // namespace capstan
