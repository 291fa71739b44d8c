// fast_parts_test.cpp -- files that a ps writes to the fast level, with and without disk space, visible to
// the coordinator or not.
#include "ps/durability/fast_parts.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "io/hdf5/fast_level.hpp"
#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"

namespace capstan::ps {
namespace {

namespace fs = std::filesystem;

class FastPartsTest : public testing::Test {
 protected:
  FastPartsTest() {
    fs::create_directories(run_);
    fs::create_directories(unfinished_);
  }

  std::vector<io::PartArray> arrays(std::uint64_t rows = 1000) {
    io::PartArray array{.variable = "w", .shape = {rows}, .rows = rows};
    array.read = [this](std::uint64_t first, std::uint64_t count, std::byte* out) {
      ++reads_;
      for (std::uint64_t i = 0; i < count; ++i)
        reinterpret_cast<float*>(out)[i] = static_cast<float>(first + i);
    };
    return {array};
  }

  io::TemporaryDirectory directory_;
  fs::path run_ = directory_.path() / "run";
  fs::path unfinished_ = run_ / "checkpoint-00000001.tmp";
  io::FastLevel level_{directory_.path() / "fast", run_};
  int reads_ = 0;
  bool warned_ = false;
};

TEST_F(FastPartsTest, DrainsToTheCheckpointDirectory) {
  const io::FastLocation location = level_.begin(1);
  {
    FastParts fast(location, warned_);
    const auto report = fast.write("part-00000-of-00001.h5", arrays());
    ASSERT_TRUE(report);
    EXPECT_TRUE(fast.visible_to_coordinator());
    EXPECT_FALSE(fs::exists(unfinished_ / report->file));
    fs::rename(location.directory,
               location.directory.parent_path() / "checkpoint-00000001");  // published in the meantime
    fast.drain(unfinished_, {});
    EXPECT_EQ(fs::file_size(unfinished_ / report->file), report->bytes);
  }
  EXPECT_TRUE(fs::exists(location.directory.parent_path() / "checkpoint-00000001/part-00000-of-00001.h5"));
  EXPECT_FALSE(warned_);
}

TEST_F(FastPartsTest, RemovesFilesThatTheCoordinatorDoesNotSee) {
  io::FastLocation location = level_.begin(1);
  const fs::path earlier = location.directory.parent_path() / "checkpoint-00000009";
  for (const std::string owner : {"", "another coordinator's\n"}) {
    location.owner = owner;
    fs::create_directories(earlier);
    {
      FastParts fast(location, warned_);
      EXPECT_FALSE(fs::exists(earlier));
      ASSERT_TRUE(fast.write("part-00000-of-00001.h5", arrays()));
      EXPECT_FALSE(fast.visible_to_coordinator());
      fast.drain(unfinished_, {});
    }
    EXPECT_TRUE(fs::exists(unfinished_ / "part-00000-of-00001.h5"));
    EXPECT_FALSE(fs::exists(location.directory.parent_path()));
  }
}

TEST_F(FastPartsTest, RejectsALinkOfAnotherUser) {
  const fs::path victim = directory_.path() / "victim";
  fs::create_directories(victim / "checkpoint-00000009");
  fs::create_directories(directory_.path() / "fast");
  fs::create_directory_symlink(victim, level_.path());
  const io::FastLocation location{level_.path() / "checkpoint-00000001.tmp", {}};
  {
    FastParts fast(location, warned_);
    EXPECT_FALSE(fast.write("part-00000-of-00001.h5", arrays()));
    EXPECT_TRUE(warned_);
  }
  EXPECT_TRUE(fs::exists(victim / "checkpoint-00000009"));
  EXPECT_FALSE(fs::exists(victim / "checkpoint-00000001.tmp"));
  EXPECT_EQ(reads_, 0);
}

TEST_F(FastPartsTest, RejectsModifiedFilesWhenDraining) {
  const io::FastLocation location = level_.begin(1);
  FastParts fast(location, warned_);
  const auto report = fast.write("part-00000-of-00001.h5", arrays());
  ASSERT_TRUE(report);
  std::fstream file(location.directory / report->file, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(report->datasets.at(0).offset));
  file.put('x').flush();
  const std::string error = error_of(Code::data_loss, [&] { fast.drain(unfinished_, {}); });
  EXPECT_TRUE(error.starts_with((location.directory / report->file).string() + " is damaged")) << error;
}

TEST_F(FastPartsTest, ReadsNoRowIfTheDiskIsFull) {
  FastParts fast(level_.begin(1), warned_);
  ASSERT_TRUE(fast.write("part-00000-of-00002.h5", arrays()));
  reads_ = 0;
  EXPECT_FALSE(fast.write("part-00001-of-00002.h5", arrays(std::uint64_t{1} << 50)));
  EXPECT_EQ(reads_, 0);
  EXPECT_TRUE(warned_);
  EXPECT_FALSE(fast.visible_to_coordinator());
  fast.drain(unfinished_, {});  // the files that were written
  EXPECT_TRUE(fs::exists(unfinished_ / "part-00000-of-00002.h5"));
}

TEST_F(FastPartsTest, WritesNothingWithoutADirectory) {
  io::FastLocation location = level_.begin(1);
  const fs::path file = directory_.write("file", "");
  location.directory = file / "checkpoints-0/checkpoint-00000001.tmp";
  FastParts fast(location, warned_);
  EXPECT_TRUE(warned_);
  EXPECT_FALSE(fast.write("part-00000-of-00001.h5", arrays()));
  FastParts none({}, warned_);
  EXPECT_FALSE(none.write("part-00000-of-00001.h5", arrays()));
  EXPECT_FALSE(none.visible_to_coordinator());
  EXPECT_EQ(reads_, 0);
}

}  // namespace
}  // namespace capstan::ps
