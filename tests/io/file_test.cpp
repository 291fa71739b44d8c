// file_test.cpp -- removal of directories and links; durable writes.
#include "io/file.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "support/expect_error.hpp"
#include "tests/io/temporary_directory.hpp"

namespace capstan::io {
namespace {

/// A save restarts after the death of a ps, while another ps still creates files of the first attempt.
TEST(RemovePath, RemovesADirectoryInWhichFilesAreCreatedConcurrently) {
  const TemporaryDirectory directory;
  for (int round = 0; round < 20; ++round) {
    const auto scratch = directory.path() / "checkpoint.tmp";
    std::filesystem::create_directory(scratch);
    std::atomic<bool> begun = false;
    std::jthread maker([&] {
      for (int i = 0; i < 200; ++i) {
        const std::ofstream part(scratch / ("part-" + std::to_string(i)));
        begun = true;
        if (!part) break;  // the directory was removed
      }
    });
    while (!begun) std::this_thread::yield();
    EXPECT_NO_THROW(remove_path(scratch)) << "round " << round;
    maker.join();
    EXPECT_FALSE(std::filesystem::exists(scratch)) << "round " << round;
  }
}

TEST(RemovePath, RemovesLinksAndNotTheirTargets) {
  const TemporaryDirectory directory;
  const auto kept = directory.write("kept", "text"), scratch = directory.path() / "scratch";
  std::filesystem::create_directories(scratch / "below");
  std::filesystem::create_symlink(kept, scratch / "below" / "file");
  std::filesystem::create_directory_symlink(directory.path(), scratch / "directory");
  std::filesystem::create_directory_symlink(scratch, directory.path() / "link");
  remove_path(directory.path() / "link");
  EXPECT_TRUE(std::filesystem::exists(scratch));
  remove_path(scratch);
  EXPECT_FALSE(std::filesystem::exists(scratch));
  EXPECT_TRUE(std::filesystem::exists(kept));
}

TEST(RemovePath, IgnoresAMissingPath) {
  const TemporaryDirectory directory;
  EXPECT_NO_THROW(remove_path(directory.path() / "nothing"));
}

TEST(WriteSyncedFile, RejectsALink) {
  const TemporaryDirectory directory;
  const auto target = directory.write("target", "text"), link = directory.path() / "latest.tmp";
  std::filesystem::create_symlink(target, link);
  (void)error_of(Code::permission_denied, [&] { write_synced_file(link, "new"); });
  (void)error_of(Code::permission_denied, [&] { reserve(link, 1); });
  EXPECT_EQ(read_whole_file(target), "text");
}

}  // namespace
}  // namespace capstan::io
