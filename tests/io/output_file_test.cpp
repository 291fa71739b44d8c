// output_file_test.cpp -- a file is complete or does not exist.
#include "io/output_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/expect_error.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

int files_in(const fs::path& directory) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory)) ++count;
  return count;
}

TEST(OutputFile, AppearsWhenPublished) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "out";
  {
    OutputFile out(path, false);
    out.append("two ");
    out.append("words");
    EXPECT_EQ(out.appended(), 9U);
    out.write_at(0, "TWO");
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(read_whole_file(out.temporary()), "TWO words");
    out.publish();
  }
  EXPECT_EQ(read_whole_file(path), "TWO words");
  EXPECT_EQ(files_in(directory.path()), 1);
}

TEST(OutputFile, LeavesNothingIfNotPublished) {
  const TemporaryDirectory directory;
  { OutputFile(directory.path() / "out", false).append("half"); }
  EXPECT_EQ(files_in(directory.path()), 0);
}

TEST(OutputFile, ReplacesOnlyOnRequest) {
  const TemporaryDirectory directory;
  const fs::path path = directory.write("out", "old");
  EXPECT_THAT(error_of(Code::already_exists, [&] { OutputFile(path, false); }), HasSubstr("--force"));
  {
    OutputFile out(path, true);
    out.append("new");
    EXPECT_EQ(read_whole_file(path), "old");
    out.publish();
  }
  EXPECT_EQ(read_whole_file(path), "new");
}

TEST(OutputFile, DoesNotReplaceAFileCreatedMeanwhile) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "out";
  {
    OutputFile out(path, false);
    directory.write("out", "of another program");
    error_of(Code::already_exists, [&] { out.publish(); });
  }
  EXPECT_EQ(read_whole_file(path), "of another program");
  EXPECT_EQ(files_in(directory.path()), 1);
}

TEST(OutputFile, RejectsInvalidPathsAndFullDisks) {
  const TemporaryDirectory directory;
  error_of(Code::invalid_argument, [&] { OutputFile(directory.path(), true); });
  error_of(Code::not_found, [&] { OutputFile(directory.path() / "nowhere" / "out", true); });
  error_of(Code::resource_exhausted, [&] {
    OutputFile out(directory.path() / "out", true);
    reserve(out.temporary(), std::uint64_t{1} << 62);
  });
  EXPECT_EQ(files_in(directory.path()), 0);
}

}  // namespace
}  // namespace capstan::io
