// program_path_test.cpp -- the search for the program of `capstan run`.
#include "launch/run/program_path.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

namespace capstan::launch::run {
namespace {

TEST(ProgramPath, SearchesThePathForANameWithoutASlash) {
  EXPECT_EQ(program_error("sh", "/nowhere:/bin"), 0);
  EXPECT_EQ(program_error("sh", "/nowhere:/usr/share"), ENOENT);
  EXPECT_EQ(program_error("sh", ""), ENOENT);
  EXPECT_EQ(program_error("sh", nullptr), 0) << "without PATH, execvp searches the directories of the system";
}

TEST(ProgramPath, AnEmptyDirectoryIsTheCurrentOne) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path("/bin");
  for (const char* path : {"", ":/nowhere", "/nowhere:", "/nowhere::/nowhere"})
    EXPECT_EQ(program_error("sh", path), 0) << path;
  std::filesystem::current_path(before);
}

TEST(ProgramPath, UsesAPathAsItIs) {
  EXPECT_EQ(program_error("/bin/sh", ""), 0);
  EXPECT_EQ(program_error("/nowhere/program", "/bin"), ENOENT);
  EXPECT_EQ(program_error("/bin", "/"), EACCES) << "a directory";
  EXPECT_EQ(program_error("bin", "/"), EACCES) << "a directory in a directory of the path";
  EXPECT_EQ(program_error(CAPSTAN_SOURCE_DIR "/README.md", ""), EACCES) << "not executable";
}

}  // namespace
}  // namespace capstan::launch::run
