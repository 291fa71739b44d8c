// fast_level_test.cpp -- checkpoints in the fast level, and their recovery to the checkpoint directory.
// Tests: io/hdf5/fast_directory.cpp
// Tests: io/directory.cpp
#include "io/hdf5/fast_level.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/checkpoint_sample.hpp"
#include "io/hdf5/copy_part.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/increment_sample.hpp"
#include "io/temporary_directory.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

void flip_byte(const fs::path& file, std::uint64_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(at));
  const auto byte = static_cast<char>(stream.get() ^ 1);
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(byte);
}

class FastLevelTest : public testing::Test {
 protected:
  FastLevelTest() { directory_.check_writable(); }

  /// Saves to the fast level only.
  void save_fast(FastLevel& fast, std::int64_t step, const std::vector<SampleArray>& arrays) {
    const FastLocation location = fast.begin(step);
    ASSERT_FALSE(location.owner.empty());
    ASSERT_TRUE(
        fast.publish(step, write_parts(location.directory, arrays, 3), {.user_state = "{\"epoch\": 7}"}));
  }

  TemporaryDirectory scratch_;
  fs::path base_ = scratch_.path() / "fast";
  CheckpointDirectory directory_{scratch_.path() / "run"};
  FastLevel fast_{base_, directory_.path()};
};

TEST_F(FastLevelTest, RecoversANewerCheckpoint) {
  save(directory_, 4, sample_arrays(1), 2);
  save_fast(fast_, 5, sample_arrays(2));
  FastLevel next(base_, directory_.path() / "");  // another spelling
  EXPECT_EQ(next.recover(directory_), 5);
  const FoundCheckpoint found = open_latest(directory_.path());
  EXPECT_EQ(found.reader.step(), 5);
  EXPECT_EQ(found.reader.user_state(), "{\"epoch\":7}");
  expect_holds(found.reader, sample_arrays(2));
  EXPECT_FALSE(fs::exists(next.path())) << "only the checkpoint directory has it";
  EXPECT_EQ(next.recover(directory_), std::nullopt);
}

TEST_F(FastLevelTest, AnIncrementFindsItsBaseInTheDirectory) {
  const fs::path base = save(directory_, 4, sample_arrays(1), 2);
  const Changes changes{{"entities/embedding", {3, 70}}, {"weights", {}}, {"counts", {16}}, {"step", {0}}};
  std::vector<SampleArray> arrays = sample_arrays(1);
  for (SampleArray& array : arrays) {
    for (const std::uint64_t row : changes.at(array.variable)) array.bytes[row * array.row_bytes()] ^= 1;
  }
  const FastLocation location = fast_.begin(5);
  std::vector<std::vector<char>> memory;
  const auto report = write_part(location.directory / part_file_name(0, 1),
                                 only_changed(part_arrays(arrays, 0, 1), changes, memory));
  const PublishOptions options{.base = Base{base.filename().string(), manifest_checksum(base)}};
  ASSERT_TRUE(fast_.publish(5, std::vector{report}, options));
  fs::rename(base, scratch_.path() / "aside");
  EXPECT_EQ(fast_.recover(directory_), std::nullopt) << "its base is missing";
  fs::rename(scratch_.path() / "aside", base);
  EXPECT_EQ(fast_.recover(directory_), 5);
  expect_holds(open_latest(directory_.path()).reader, arrays);
}

TEST_F(FastLevelTest, DoesNotRecoverACheckpointThatIsNotNewer) {
  save_fast(fast_, 5, sample_arrays(2));
  save(directory_, 5, sample_arrays(1), 2);
  EXPECT_EQ(FastLevel(base_, directory_.path()).recover(directory_), std::nullopt);
  expect_holds(open_latest(directory_.path()).reader, sample_arrays(1));
}

TEST_F(FastLevelTest, SkipsADamagedCheckpoint) {
  save(directory_, 4, sample_arrays(1), 2);
  save_fast(fast_, 5, sample_arrays(2));
  const auto entries = list_checkpoints(fast_.path());
  ASSERT_EQ(entries.size(), 1U);
  const std::vector<std::string> files{"part-00001-of-00003.h5", kManifestFile, kMasterFile};
  for (const std::string& file : files) {
    const std::uint64_t bytes = fs::file_size(entries[0].path / file);
    for (const std::uint64_t at : {bytes / 7, bytes / 2, bytes - 1}) {
      flip_byte(entries[0].path / file, at);
      EXPECT_EQ(fast_.recover(directory_), std::nullopt) << file << " " << at;
      flip_byte(entries[0].path / file, at);
    }
  }
  fs::remove(entries[0].path / files[0]);
  EXPECT_EQ(fast_.recover(directory_), std::nullopt);
  EXPECT_EQ(open_latest(directory_.path()).reader.step(), 4);
  (void)directory_.begin(6);
  EXPECT_FALSE(fs::exists(directory_.path() / kRecoveredDirectory)) << "a partial copy remains";
  EXPECT_TRUE(open_latest(directory_.path()).damaged.empty());
}

TEST_F(FastLevelTest, IgnoresAnUnfinishedCheckpoint) {
  const FastLocation location = fast_.begin(5);
  (void)write_parts(location.directory, sample_arrays(), 3);
  EXPECT_EQ(fast_.recover(directory_), std::nullopt);
  (void)fast_.begin(6);
  EXPECT_FALSE(fs::exists(location.directory)) << "the next save removes it";
  fast_.close();
  EXPECT_FALSE(fs::exists(fast_.path()));
  EXPECT_TRUE(fs::exists(base_));
}

TEST_F(FastLevelTest, KeepsOnlyTheNewest) {
  save_fast(fast_, 5, sample_arrays(1));
  save_fast(fast_, 6, sample_arrays(2));
  ASSERT_EQ(list_checkpoints(fast_.path()).size(), 1U);
  EXPECT_EQ(list_checkpoints(fast_.path())[0].step, 6);
  fast_.close();
  EXPECT_EQ(list_checkpoints(fast_.path()).size(), 1U) << "the checkpoint directory does not have it";
  fast_.clear();
  EXPECT_FALSE(fs::exists(fast_.path()));
}

TEST_F(FastLevelTest, CheckpointDirectoriesShareABase) {
  CheckpointDirectory other(scratch_.path() / "other");
  other.check_writable();
  FastLevel of_other(base_, other.path());
  save_fast(fast_, 5, sample_arrays(1));
  save_fast(of_other, 6, sample_arrays(2));
  EXPECT_EQ(fast_.recover(directory_), 5);
  EXPECT_EQ(of_other.recover(other), 6);
}

TEST_F(FastLevelTest, IgnoresCheckpointsOfAnEarlierDirectoryOfTheSameName) {
  save_fast(fast_, 5, sample_arrays(1));
  fs::remove_all(directory_.path());
  directory_.check_writable();
  FastLevel next(base_, directory_.path());
  EXPECT_EQ(next.recover(directory_), std::nullopt);
  save_fast(next, 2, sample_arrays(2));
  EXPECT_EQ(list_checkpoints(next.path()).size(), 1U);
  EXPECT_EQ(next.recover(directory_), 2);
}

TEST_F(FastLevelTest, ASaveWithoutFastLevelInvalidatesIt) {
  save_fast(fast_, 5, sample_arrays(1));
  FastLevel none("", directory_.path());
  EXPECT_FALSE(none);
  EXPECT_TRUE(none.begin(3).directory.empty());
  none.clear();
  EXPECT_EQ(fast_.recover(directory_), std::nullopt);
}

TEST_F(FastLevelTest, SavesContinueIfItCannotBeCreated) {
  const fs::path file = scratch_.write("file", "");
  FastLevel nowhere(file / "fast", directory_.path());
  const FastLocation location = nowhere.begin(5);
  EXPECT_FALSE(location.directory.empty()) << "other hosts may have one";
  EXPECT_TRUE(location.owner.empty());
  EXPECT_EQ(nowhere.recover(directory_), std::nullopt);
  nowhere.clear();
  nowhere.close();
}

/// Fixture with a directory of another user whose files, including a checkpoint, must not be removed.
class FastLevelOfAnotherUser : public FastLevelTest {
 protected:
  FastLevelOfAnotherUser() {
    fs::create_directories(foreign_ / "checkpoint-00000001");
    std::ofstream(foreign_ / "checkpoint-00000001" / "part.h5") << "rows";
    std::ofstream(foreign_ / "notes") << "text";
  }

  void expect_refused() {
    const FastLocation location = fast_.begin(5);
    EXPECT_TRUE(location.owner.empty());
    EXPECT_EQ(fast_.recover(directory_), std::nullopt);
    fast_.clear();
    fast_.close();
    EXPECT_TRUE(fs::exists(foreign_ / "checkpoint-00000001" / "part.h5"));
    EXPECT_TRUE(fs::exists(foreign_ / "notes"));
  }
  /// Writes an owner file that matches this checkpoint directory.
  void forge_owner() {
    (void)FastLevel(scratch_.path() / "own", directory_.path()).begin(1);
    const std::string number = file_text(directory_.path() / kFastLevelFile);
    std::ofstream(foreign_ / kOwnerFile) << number << " 0 " << directory_.path().string() << '\n';
  }

  fs::path foreign_ = scratch_.path() / "victim";
};

TEST_F(FastLevelOfAnotherUser, RejectsALinkInPlaceOfItsDirectory) {
  fs::create_directories(base_);
  fs::create_directory_symlink(foreign_, fast_.path());
  expect_refused();
  forge_owner();
  expect_refused();
}

TEST_F(FastLevelOfAnotherUser, RejectsALinkInPlaceOfTheBase) {
  const fs::path below = foreign_ / fast_.path().filename();
  fs::create_directories(below / "checkpoint-00000001");
  fs::create_directory_symlink(foreign_, base_);
  expect_refused();
  EXPECT_TRUE(fs::exists(below / "checkpoint-00000001"));
}

TEST_F(FastLevelOfAnotherUser, RejectsDirectoriesThatOthersMayWrite) {
  const fs::path stale = fast_.path() / "checkpoint-00000001";
  fs::create_directories(stale);
  for (const fs::path& writable : {base_, fast_.path()}) {
    fs::permissions(writable, fs::perms(0777));
    expect_refused();
    EXPECT_TRUE(fs::exists(stale)) << writable;
    fs::permissions(writable, fs::perms(0755));
  }
  fs::permissions(base_, fs::perms(01777));  // as /dev/shm
  EXPECT_FALSE(fast_.begin(5).owner.empty());
}

TEST_F(FastLevelOfAnotherUser, RejectsDirectoriesOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const fs::path stale = fast_.path() / "checkpoint-00000001";
  fs::create_directories(stale);
  for (const fs::path& foreign : {base_, fast_.path()}) {
    ASSERT_EQ(::chown(foreign.c_str(), 4711, 4711), 0);
    expect_refused();
    EXPECT_TRUE(fs::exists(stale)) << foreign;
    ASSERT_EQ(::chown(foreign.c_str(), 0, 0), 0);
  }
}

TEST_F(FastLevelTest, RemovesOnlyCheckpointsAndItsOwnRecords) {
  save_fast(fast_, 5, sample_arrays(1));
  const fs::path notes = fast_.path() / "notes";
  std::ofstream(notes) << "text";
  fast_.clear();
  EXPECT_TRUE(fs::exists(notes));
  EXPECT_TRUE(list_checkpoints(fast_.path()).empty());
  fs::remove(notes);
  fast_.clear();
  EXPECT_FALSE(fs::exists(fast_.path()));
}

TEST(FastLevel, RejectsARelativePath) {
  EXPECT_THAT(error_of(Code::invalid_argument, [] { (void)FastLevel("fast", "run"); }),
              testing::HasSubstr("--checkpoint-fast-dir is fast"));
}

class CopyPart : public testing::Test {
 protected:
  void copy() { copy_part(open_to_read(from_), from_, to_, report_); }

  TemporaryDirectory scratch_;
  std::vector<SampleArray> arrays_ = sample_arrays();
  fs::path from_ = scratch_.path() / part_file_name(0, 1);
  fs::path to_ = scratch_.path() / "copy.h5";
  PartReport report_ = write_part(from_, part_arrays(arrays_, 0, 1));
};

TEST_F(CopyPart, CopiesAllBytes) {
  std::ofstream(to_) << std::string(100'000, 'x');  // to be replaced
  copy();
  EXPECT_EQ(file_text(to_), file_text(from_));
}

TEST_F(CopyPart, DetectsEveryChangedByte) {
  const std::uint64_t bytes = fs::file_size(from_);
  for (std::uint64_t at = 0; at < bytes; at += 61) {
    flip_byte(from_, at);
    EXPECT_TRUE(error_of(Code::data_loss, [&] { copy(); }).starts_with(from_.string() + " is damaged")) << at;
    flip_byte(from_, at);
  }
  fs::resize_file(from_, bytes - 1);
  EXPECT_TRUE(error_of(Code::data_loss, [&] { copy(); }).starts_with(from_.string() + " has "));
}

TEST_F(CopyPart, CallsBackBeforeEachChunk) {
  std::uint64_t copied = 0;
  copy_part(open_to_read(from_), from_, to_, report_, [&](std::uint64_t bytes) { copied += bytes; });
  EXPECT_EQ(copied, report_.bytes);
  struct Stop {};
  EXPECT_THROW(copy_part(open_to_read(from_), from_, to_, report_, [](std::uint64_t) { throw Stop{}; }),
               Stop);
}

}  // namespace
}  // namespace capstan::io
