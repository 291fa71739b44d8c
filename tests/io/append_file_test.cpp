// append_file_test.cpp -- files of the run directory are not written through links.
#include "io/append_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

TEST(AppendFile, CreatesItsDirectoryAndAppendsToAnExistingFile) {
  const TemporaryDirectory scratch;
  const auto path = scratch.path() / "events" / "metrics.jsonl";
  EXPECT_TRUE(AppendFile(path).append("one\n"));
  EXPECT_TRUE(AppendFile(path).append("two\n"));
  EXPECT_EQ(read_whole_file(path), "one\ntwo\n");
}

TEST(AppendFile, RejectsALink) {
  const TemporaryDirectory scratch;
  const auto target = scratch.write("target", "text"), link = scratch.path() / "metrics.jsonl";
  std::filesystem::create_symlink(target, link);
  AppendFile file(link);
  EXPECT_FALSE(file.append("line\n"));
  std::filesystem::remove(link);
  EXPECT_TRUE(file.append("line\n"));
  EXPECT_EQ(read_whole_file(target), "text");
}

TEST(ReplaceText, ReplacesALinkAndNotItsTarget) {
  const TemporaryDirectory scratch;
  const auto target = scratch.write("target", "text"), path = scratch.path() / "summary.txt";
  std::filesystem::create_symlink(target, path);
  // The name of the temporary file.
  std::filesystem::create_symlink(target, path.string() + ".tmp-" + std::to_string(::getpid()));
  bool warned = false;
  EXPECT_TRUE(replace_text(path, "new", warned));
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  EXPECT_EQ(read_whole_file(path), "new");
  EXPECT_EQ(read_whole_file(target), "text");
}

}  // namespace
}  // namespace capstan::io
