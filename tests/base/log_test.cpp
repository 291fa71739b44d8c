// log_test.cpp -- the file beside standard error: what goes where, and what happens when it cannot be
// written.
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
    folder_ = name;
    log::set_level("warn");
    log::set_rank_tag("worker 1@node17");
  }
  void TearDown() override {
    log::set_level("info");
    log::also_to("/dev/null", 0);
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path file() const { return folder_ / "run" / "log" / "rank-00003.log"; }
  std::vector<std::string> lines() const {
    std::ifstream in(file());
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

  std::filesystem::path folder_;
};

TEST_F(LogToFile, HasLinesFromInfoUpAndStandardErrorFromItsOwnLevel) {
  log::also_to(file(), 3);
  testing::internal::CaptureStderr();
  log::debug("for nobody");
  log::info("for the file");
  log::warn("for both");
  const std::string console = testing::internal::GetCapturedStderr();
  EXPECT_THAT(console, HasSubstr("[worker 1@node17] [warning] for both\n"));
  EXPECT_THAT(console, Not(HasSubstr("for the file")));
  const auto found = lines();
  ASSERT_EQ(found.size(), 3U);
  const std::string head = R"(\[20..-..-.. ..:..:..\....\] \[rank 3\] \[worker 1@node17\] )";
  EXPECT_THAT(found[0], MatchesRegex(head + R"(\[info\] process )" + std::to_string(getpid()) + " begins"));
  EXPECT_THAT(found[1], MatchesRegex(head + R"(\[info\] for the file)"));
  EXPECT_THAT(found[2], MatchesRegex(head + R"(\[warning\] for both)"));
}

TEST_F(LogToFile, IsAsTalkativeAsStandardErrorWhereThatIsMore) {
  log::also_to(file(), 3);
  log::set_level("debug");
  testing::internal::CaptureStderr();
  log::debug("for both");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("for both"));
  EXPECT_THAT(lines().back(), HasSubstr("[debug] for both"));
}

TEST_F(LogToFile, GoesOnWhereAnEarlierProcessEnded) {
  log::also_to(file(), 3);
  log::info("of the first");
  log::also_to(file(), 3);
  log::info("of the second");
  const auto found = lines();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_THAT(found[1], HasSubstr("of the first"));
  EXPECT_THAT(found[3], HasSubstr("of the second"));
}

TEST_F(LogToFile, LinesOfManyThreadsAreWhole) {
  log::also_to(file(), 3);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([i] {
        log::set_rank_tag("thread");
        for (int line = 0; line < 100; ++line) log::info("{} says {:>60}", i, line);
      });
    }
  }
  const auto found = lines();
  EXPECT_EQ(found.size(), 401U);
  for (const std::string& line : found) EXPECT_THAT(line, HasSubstr("] [rank 3] ["));
}

TEST_F(LogToFile, AFolderThatCannotBeMadeIsOneWarning) {
  std::ofstream(folder_ / "run") << "a file where the folder should be";
  testing::internal::CaptureStderr();
  log::also_to(file(), 3);
  log::info("lost");
  log::error("not lost");
  const std::string console = testing::internal::GetCapturedStderr();
  EXPECT_THAT(console, HasSubstr("rank-00003.log: open: Not a directory; the job goes on"));
  EXPECT_EQ(console.find("the job goes on"), console.rfind("the job goes on"));
  EXPECT_THAT(console, HasSubstr("[error] not lost"));
}

/// Each is what another user could have put where the log goes.
TEST_F(LogToFile, IsNotRedirectedByWhatAnotherUserPlanted) {
  const std::filesystem::path victim = folder_ / "victim";
  const auto refuse = [&](const char* what) {
    std::ofstream(victim) << "text";
    testing::internal::CaptureStderr();
    log::also_to(file(), 3);
    log::info("lost");
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(file().string() + ": open: ")) << what;
    EXPECT_EQ(std::filesystem::file_size(victim), 4U) << what;
  };
  std::filesystem::create_directories(file().parent_path());
  std::filesystem::create_symlink(victim, file());
  refuse("a link");
  std::filesystem::remove(file());
  std::filesystem::create_symlink(folder_ / "new", file());
  refuse("a link to nothing");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
  std::filesystem::remove(file());
  std::filesystem::create_hard_link(victim, file());
  refuse("a hard link");
  std::filesystem::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  refuse("a pipe");
}

TEST_F(LogToFile, FollowsItsOwnUsersLinkToADirectoryAndNoOther) {
  std::filesystem::create_directories(folder_ / "elsewhere");
  std::filesystem::create_directories(file().parent_path().parent_path());
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", file().parent_path());
  log::also_to(file(), 3);
  EXPECT_EQ(lines().size(), 1U);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a link and a file away";
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

TEST_F(LogToFile, AFullDiskIsOneWarning) {
  testing::internal::CaptureStderr();
  log::also_to("/dev/full", 3);
  for (int i = 0; i < 10; ++i) log::info("lost");
  log::error("not lost");
  const std::string console = testing::internal::GetCapturedStderr();
  EXPECT_THAT(console, HasSubstr("/dev/full: write: No space left on device; the job goes on"));
  EXPECT_EQ(console.find("the job goes on"), console.rfind("the job goes on"));
  EXPECT_THAT(console, HasSubstr("[error] not lost"));
}

}  // namespace
}  // namespace capstan
