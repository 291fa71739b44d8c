// fast_level_test.cpp -- checkpoints that lie in the first of two levels, and are brought to the second.
// Tests: io/hdf5/fast_directory.cpp
// Tests: io/directory.cpp
#include "io/hdf5/fast_level.hpp"

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
#include "io/temporary_folder.hpp"

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

  /// A save that gets as far as the first level.
  void save_fast(FastLevel& fast, std::int64_t step, const std::vector<SampleArray>& arrays) {
    const FastPlace place = fast.begin(step);
    ASSERT_FALSE(place.owner.empty());
    ASSERT_TRUE(fast.publish(step, write_parts(place.folder, arrays, 3), {.user_state = "{\"epoch\": 7}"}));
  }

  TemporaryFolder folder_;
  fs::path base_ = folder_.path() / "fast";
  CheckpointDirectory directory_{folder_.path() / "run"};
  FastLevel fast_{base_, directory_.path()};
};

TEST_F(FastLevelTest, ANewerOneIsBroughtToTheDirectory) {
  save(directory_, 4, sample_arrays(1), 2);
  save_fast(fast_, 5, sample_arrays(2));
  FastLevel next(base_, directory_.path() / "");  // another spelling
  EXPECT_EQ(next.rescue(directory_), 5);
  const FoundCheckpoint found = open_latest(directory_.path());
  EXPECT_EQ(found.reader.step(), 5);
  EXPECT_EQ(found.reader.user_state(), "{\"epoch\":7}");
  expect_holds(found.reader, sample_arrays(2));
  EXPECT_FALSE(fs::exists(next.folder())) << "it is nowhere but in the directory";
  EXPECT_EQ(next.rescue(directory_), std::nullopt);
}

TEST_F(FastLevelTest, AnIncrementFindsItsBaseInTheDirectory) {
  const fs::path base = save(directory_, 4, sample_arrays(1), 2);
  const Changes changes{{"entities/embedding", {3, 70}}, {"weights", {}}, {"counts", {16}}, {"step", {0}}};
  std::vector<SampleArray> arrays = sample_arrays(1);
  for (SampleArray& array : arrays) {
    for (const std::uint64_t row : changes.at(array.variable)) array.bytes[row * array.row_bytes()] ^= 1;
  }
  const FastPlace place = fast_.begin(5);
  std::vector<std::vector<char>> memory;
  const auto report = write_part(place.folder / part_file_name(0, 1),
                                 only_changed(part_arrays(arrays, 0, 1), changes, memory));
  const PublishOptions options{.base = Base{base.filename().string(), manifest_checksum(base)}};
  ASSERT_TRUE(fast_.publish(5, std::vector{report}, options));
  fs::rename(base, folder_.path() / "aside");
  EXPECT_EQ(fast_.rescue(directory_), std::nullopt) << "its base is missing";
  fs::rename(folder_.path() / "aside", base);
  EXPECT_EQ(fast_.rescue(directory_), 5);
  expect_holds(open_latest(directory_.path()).reader, arrays);
}

TEST_F(FastLevelTest, OneThatIsNoNewerIsNot) {
  save_fast(fast_, 5, sample_arrays(2));
  save(directory_, 5, sample_arrays(1), 2);
  EXPECT_EQ(FastLevel(base_, directory_.path()).rescue(directory_), std::nullopt);
  expect_holds(open_latest(directory_.path()).reader, sample_arrays(1));
}

TEST_F(FastLevelTest, ADamagedOneIsPassedOver) {
  save(directory_, 4, sample_arrays(1), 2);
  save_fast(fast_, 5, sample_arrays(2));
  const auto entries = list_checkpoints(fast_.folder());
  ASSERT_EQ(entries.size(), 1U);
  const std::vector<std::string> files{"part-00001-of-00003.h5", kManifestFile, kMasterFile};
  for (const std::string& file : files) {
    const std::uint64_t bytes = fs::file_size(entries[0].path / file);
    for (const std::uint64_t at : {bytes / 7, bytes / 2, bytes - 1}) {
      flip_byte(entries[0].path / file, at);
      EXPECT_EQ(fast_.rescue(directory_), std::nullopt) << file << " " << at;
      flip_byte(entries[0].path / file, at);
    }
  }
  fs::remove(entries[0].path / files[0]);
  EXPECT_EQ(fast_.rescue(directory_), std::nullopt);
  EXPECT_EQ(open_latest(directory_.path()).reader.step(), 4);
  (void)directory_.begin(6);
  EXPECT_FALSE(fs::exists(directory_.path() / kRescued)) << "what was copied of it is a leftover";
  EXPECT_TRUE(open_latest(directory_.path()).damaged.empty());
}

TEST_F(FastLevelTest, AnUnfinishedOneIsNone) {
  const FastPlace place = fast_.begin(5);
  (void)write_parts(place.folder, sample_arrays(), 3);
  EXPECT_EQ(fast_.rescue(directory_), std::nullopt);
  (void)fast_.begin(6);
  EXPECT_FALSE(fs::exists(place.folder)) << "the next save removes it";
  fast_.leave();
  EXPECT_FALSE(fs::exists(fast_.folder()));
  EXPECT_TRUE(fs::exists(base_));
}

TEST_F(FastLevelTest, KeepsTheNewestAlone) {
  save_fast(fast_, 5, sample_arrays(1));
  save_fast(fast_, 6, sample_arrays(2));
  ASSERT_EQ(list_checkpoints(fast_.folder()).size(), 1U);
  EXPECT_EQ(list_checkpoints(fast_.folder())[0].step, 6);
  fast_.leave();
  EXPECT_EQ(list_checkpoints(fast_.folder()).size(), 1U) << "it has not reached the directory";
  fast_.clear();
  EXPECT_FALSE(fs::exists(fast_.folder()));
}

TEST_F(FastLevelTest, DirectoriesShareIt) {
  CheckpointDirectory other(folder_.path() / "other");
  other.check_writable();
  FastLevel of_other(base_, other.path());
  save_fast(fast_, 5, sample_arrays(1));
  save_fast(of_other, 6, sample_arrays(2));
  EXPECT_EQ(fast_.rescue(directory_), 5);
  EXPECT_EQ(of_other.rescue(other), 6);
}

TEST_F(FastLevelTest, IsNotThatOfAnEarlierDirectoryOfTheSameName) {
  save_fast(fast_, 5, sample_arrays(1));
  fs::remove_all(directory_.path());
  directory_.check_writable();
  FastLevel next(base_, directory_.path());
  EXPECT_EQ(next.rescue(directory_), std::nullopt);
  save_fast(next, 2, sample_arrays(2));
  EXPECT_EQ(list_checkpoints(next.folder()).size(), 1U);
  EXPECT_EQ(next.rescue(directory_), 2);
}

TEST_F(FastLevelTest, ASaveWithoutItEndsIt) {
  save_fast(fast_, 5, sample_arrays(1));
  FastLevel none("", directory_.path());
  EXPECT_FALSE(none);
  EXPECT_TRUE(none.begin(3).folder.empty());
  none.clear();
  EXPECT_EQ(fast_.rescue(directory_), std::nullopt);
}

TEST_F(FastLevelTest, WhereItCannotBeMadeThereIsNone) {
  const fs::path file = folder_.write("file", "");
  FastLevel nowhere(file / "fast", directory_.path());
  const FastPlace place = nowhere.begin(5);
  EXPECT_FALSE(place.folder.empty()) << "other hosts may have one";
  EXPECT_TRUE(place.owner.empty());
  EXPECT_EQ(nowhere.rescue(directory_), std::nullopt);
  nowhere.clear();
  nowhere.leave();
}

/// A directory whose files must stay, with a checkpoint that a removal would look for.
class FastLevelOfAnotherUser : public FastLevelTest {
 protected:
  FastLevelOfAnotherUser() {
    fs::create_directories(victim_ / "checkpoint-00000001");
    std::ofstream(victim_ / "checkpoint-00000001" / "part.h5") << "rows";
    std::ofstream(victim_ / "notes") << "text";
  }

  void expect_refused() {
    const FastPlace place = fast_.begin(5);
    EXPECT_TRUE(place.owner.empty());
    EXPECT_EQ(fast_.rescue(directory_), std::nullopt);
    fast_.clear();
    fast_.leave();
    EXPECT_TRUE(fs::exists(victim_ / "checkpoint-00000001" / "part.h5"));
    EXPECT_TRUE(fs::exists(victim_ / "notes"));
  }
  /// What an owner of another user's directory would need to pass for ours.
  void forge_owner() {
    (void)FastLevel(folder_.path() / "own", directory_.path()).begin(1);
    const std::string number = file_text(directory_.path() / kFastLevelFile);
    std::ofstream(victim_ / kOwnerFile) << number << " 0 " << directory_.path().string() << '\n';
  }

  fs::path victim_ = folder_.path() / "victim";
};

TEST_F(FastLevelOfAnotherUser, RefusesALinkInPlaceOfItsDirectory) {
  fs::create_directories(base_);
  fs::create_directory_symlink(victim_, fast_.folder());
  expect_refused();
  forge_owner();
  expect_refused();
}

TEST_F(FastLevelOfAnotherUser, RefusesALinkInPlaceOfTheBase) {
  const fs::path below = victim_ / fast_.folder().filename();
  fs::create_directories(below / "checkpoint-00000001");
  fs::create_directory_symlink(victim_, base_);
  expect_refused();
  EXPECT_TRUE(fs::exists(below / "checkpoint-00000001"));
}

TEST_F(FastLevelOfAnotherUser, RefusesDirectoriesThatOthersMayWrite) {
  const fs::path stale = fast_.folder() / "checkpoint-00000001";
  fs::create_directories(stale);
  for (const fs::path& writable : {base_, fast_.folder()}) {
    fs::permissions(writable, fs::perms(0777));
    expect_refused();
    EXPECT_TRUE(fs::exists(stale)) << writable;
    fs::permissions(writable, fs::perms(0755));
  }
  fs::permissions(base_, fs::perms(01777));  // as /dev/shm
  EXPECT_FALSE(fast_.begin(5).owner.empty());
}

TEST_F(FastLevelOfAnotherUser, RefusesDirectoriesThatBelongToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const fs::path stale = fast_.folder() / "checkpoint-00000001";
  fs::create_directories(stale);
  for (const fs::path& foreign : {base_, fast_.folder()}) {
    ASSERT_EQ(::chown(foreign.c_str(), 4711, 4711), 0);
    expect_refused();
    EXPECT_TRUE(fs::exists(stale)) << foreign;
    ASSERT_EQ(::chown(foreign.c_str(), 0, 0), 0);
  }
}

TEST_F(FastLevelTest, RemovesCheckpointsAndItsOwnRecordsAlone) {
  save_fast(fast_, 5, sample_arrays(1));
  const fs::path notes = fast_.folder() / "notes";
  std::ofstream(notes) << "text";
  fast_.clear();
  EXPECT_TRUE(fs::exists(notes));
  EXPECT_TRUE(list_checkpoints(fast_.folder()).empty());
  fs::remove(notes);
  fast_.clear();
  EXPECT_FALSE(fs::exists(fast_.folder()));
}

TEST(FastLevel, ItsNameIsAbsolute) {
  expect_error(Code::invalid_argument,
               "--checkpoint-fast-dir is fast; give the full name of a folder, such as /dev/shm/run",
               [] { (void)FastLevel("fast", "run"); });
}

class CopyPart : public testing::Test {
 protected:
  void copy() { copy_part(open_to_read(from_), from_, to_, report_); }

  TemporaryFolder folder_;
  std::vector<SampleArray> arrays_ = sample_arrays();
  fs::path from_ = folder_.path() / part_file_name(0, 1);
  fs::path to_ = folder_.path() / "copy.h5";
  PartReport report_ = write_part(from_, part_arrays(arrays_, 0, 1));
};

TEST_F(CopyPart, HasTheSameBytes) {
  std::ofstream(to_) << std::string(100'000, 'x');  // it is replaced
  copy();
  EXPECT_EQ(file_text(to_), file_text(from_));
}

TEST_F(CopyPart, NoticesEveryByteThatIsAnother) {
  const std::uint64_t bytes = fs::file_size(from_);
  for (std::uint64_t at = 0; at < bytes; at += 61) {
    flip_byte(from_, at);
    EXPECT_TRUE(error_of(Code::data_loss, [&] { copy(); }).starts_with(from_.string() + " is damaged")) << at;
    flip_byte(from_, at);
  }
  fs::resize_file(from_, bytes - 1);
  EXPECT_TRUE(error_of(Code::data_loss, [&] { copy(); }).starts_with(from_.string() + " has "));
}

TEST_F(CopyPart, AsksBeforeEachPiece) {
  std::uint64_t asked = 0;
  copy_part(open_to_read(from_), from_, to_, report_, [&](std::uint64_t bytes) { asked += bytes; });
  EXPECT_EQ(asked, report_.bytes);
  struct Stop {};
  EXPECT_THROW(copy_part(open_to_read(from_), from_, to_, report_, [](std::uint64_t) { throw Stop{}; }),
               Stop);
}

}  // namespace
}  // namespace capstan::io
