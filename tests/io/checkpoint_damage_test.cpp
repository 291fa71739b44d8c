// checkpoint_damage_test.cpp -- a damaged checkpoint is rejected with an error that names the file, and is
// never read as zeros.
// Tests: io/hdf5/find_checkpoint.cpp
// Tests: io/hdf5/verify.cpp
#include <gmock/gmock.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "checkpoint_sample.hpp"
#include "support/names_all.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void overwrite(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

/// Writes a valid HDF5 file that Capstan did not write: it has a group "variables", as a checkpoint has.
void write_foreign_hdf5(const fs::path& file) {
  const hid_t id = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(id, 0);
  const hid_t group = H5Gcreate2(id, "variables", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(group);
  ASSERT_GE(H5Fclose(id), 0);
}

/// Two checkpoints, steps 1 and 2, by two ps; tests damage the newer one.
class Damage : public ::testing::Test {
 protected:
  void SetUp() override {
    CheckpointDirectory directory(scratch_.path());
    save(directory, 1, old_, 2);
    newest_ = save(directory, 2, new_, 2);
    expect_usable();
  }

  fs::path file(const std::string& name) const { return newest_ / name; }

  void expect_usable() const {
    const auto found = open_latest(scratch_.path());
    EXPECT_EQ(found.reader.step(), 2);
    EXPECT_TRUE(found.damaged.empty());
    expect_holds(found.reader, new_);
  }

  /// Expects that the newest checkpoint is rejected with all of `words` and the previous one is used.
  void expect_rejected(const std::vector<std::string>& words) const {
    const auto fault = error_of(Code::data_loss, [&] { CheckpointReader(newest_).verify(); });
    for (const std::string& word : words) EXPECT_THAT(fault, HasSubstr(word));
    const auto found = open_latest(scratch_.path());
    EXPECT_EQ(found.reader.step(), 1);
    ASSERT_EQ(found.damaged.size(), 1U);
    EXPECT_THAT(found.damaged[0], HasSubstr("checkpoint-00000002: "));
    for (const std::string& word : words) EXPECT_THAT(found.damaged[0], HasSubstr(word));
    expect_holds(found.reader, old_);
  }

  TemporaryDirectory scratch_;
  std::vector<SampleArray> old_ = sample_arrays(1);
  std::vector<SampleArray> new_ = sample_arrays(50);
  fs::path newest_;
};

TEST_F(Damage, NamesAMissingFile) {
  for (const std::string name : {"part-00000-of-00002.h5", "part-00001-of-00002.h5", "checkpoint.h5",
                                 "manifest.json", "manifest.xxh3"}) {
    const auto away = scratch_.path() / "away";
    fs::rename(file(name), away);
    expect_rejected({name, name == "manifest.xxh3" ? "No such file" : "is missing"});
    fs::rename(away, file(name));
  }
  expect_usable();
}

TEST_F(Damage, NamesTheTruncatedFile) {
  int cuts = 0;
  for (const std::string name : {"part-00000-of-00002.h5", "part-00001-of-00002.h5", "checkpoint.h5",
                                 "manifest.json", "manifest.xxh3"}) {
    const std::string original = file_text(file(name));
    ASSERT_FALSE(original.empty());
    for (std::size_t length = 0; length < original.size(); length += 1 + original.size() / 97) {
      fs::resize_file(file(name), length);
      const auto fault = error_of(Code::data_loss, [&] { CheckpointReader reader(newest_); });
      EXPECT_THAT(fault, HasSubstr(name == "manifest.xxh3" ? "manifest.json" : name)) << length;
      overwrite(file(name), original);
      ++cuts;
    }
    fs::resize_file(file(name), original.size() - 1);
    expect_rejected({name == "manifest.xxh3" ? "manifest.json" : name});
    overwrite(file(name), original);
  }
  EXPECT_GT(cuts, 300);
  expect_usable();
}

TEST_F(Damage, DetectsAFlippedBitInEveryFile) {
  int flips = 0;
  for (const std::string name : {"part-00000-of-00002.h5", "part-00001-of-00002.h5", "checkpoint.h5",
                                 "manifest.json", "manifest.xxh3"}) {
    const std::string original = file_text(file(name));
    for (std::size_t at = 0; at < original.size(); at += name.starts_with("manifest") ? 13 : 61) {
      std::string damaged = original;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
      overwrite(file(name), damaged);
      const auto fault = error_of(Code::data_loss, [&] { CheckpointReader(newest_).verify(); });
      EXPECT_THAT(fault, HasSubstr(name == "manifest.xxh3" ? "manifest.json" : name)) << at;
      ++flips;
    }
    overwrite(file(name), original);
  }
  EXPECT_GT(flips, 500);
  expect_usable();
}

TEST_F(Damage, NamesTheArrayOfAFlippedBit) {
  const auto part = file("part-00001-of-00002.h5");
  std::string bytes = file_text(part);
  const SampleArray& weights = new_[2];
  const auto [first, rows] = cut(53, 1, 2);
  const std::string shard(weights.bytes.data() + first * 8, rows * 8);
  const auto at = bytes.find(shard);
  ASSERT_NE(at, std::string::npos) << "the file contains the rows unencoded";
  bytes[at + 100] ^= 1;
  overwrite(part, bytes);
  CheckpointReader reader(newest_);  // the metadata is undamaged; verify checks the rows
  expect_rejected({"part-00001-of-00002.h5", "checksum of variables/weights/value"});
}

TEST_F(Damage, RejectsAForeignHdf5File) {
  for (const std::string name : {"part-00001-of-00002.h5", "checkpoint.h5"}) {
    const std::string original = file_text(file(name));
    write_foreign_hdf5(file(name));
    expect_rejected({name, "bytes"});
    fs::resize_file(file(name), original.size());  // a foreign file of the expected size
    expect_rejected({name});
    overwrite(file(name), original);
  }
  expect_usable();
}

TEST_F(Damage, RejectsAPartOfAnotherCheckpoint) {
  const auto part = file("part-00001-of-00002.h5");
  fs::copy_file(scratch_.path() / "checkpoint-00000001" / part.filename(), part,
                fs::copy_options::overwrite_existing);
  expect_rejected({"part-00001-of-00002.h5"});
}

TEST_F(Damage, RejectsAFileThatIsNotHdf5) {
  const auto part = file("part-00000-of-00002.h5");
  overwrite(part, std::string(fs::file_size(part), 'x'));
  expect_rejected({"part-00000-of-00002.h5 is not an HDF5 file"});
  fs::remove(part);
  fs::create_directory(part);
  expect_rejected({"part-00000-of-00002.h5 is not a regular file"});
}

TEST_F(Damage, RejectsAForeignManifest) {
  const std::string original = file_text(file("manifest.json"));
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "is not JSON"},
      {"garbage\n", "is not JSON"},
      {std::string("\0\xff\xfe", 3), "is not JSON"},
      {std::string(100'000, '['), "100000"},
      {"[]", "not the manifest of a Capstan checkpoint"},
      {"{}", "not the manifest of a Capstan checkpoint"},
      {R"({"name": "a web app", "version": 1})", "not the manifest of a Capstan checkpoint"},
      {R"({"format": "capstan-checkpoint", "version": 3})", "format version 3"},
      {R"({"format": "capstan-checkpoint"})", "format version null"},
      {R"({"format": "capstan-checkpoint", "version": 1})", "manifest.xxh3"},
      {original + " ", "manifest.xxh3"}};
  for (const auto& [text, fault] : cases) {
    overwrite(file("manifest.json"), text);
    expect_rejected({"manifest.json", fault});
  }
}

TEST_F(Damage, ThrowsIfAPartIsDeletedAfterOpening) {
  const CheckpointReader reader(newest_);
  fs::remove(file("part-00001-of-00002.h5"));
  std::vector<double> out(53);
  const auto fault =
      error_of(Code::data_loss, [&] { reader.read_rows("weights", "value", 0, 53, out.data()); });
  EXPECT_THAT(fault, NamesAll({"part-00001-of-00002.h5"}));
  reader.read_rows("weights", "value", 0, 27, out.data());  // these rows are in the other part
  EXPECT_EQ(std::memcmp(out.data(), new_[2].bytes.data(), 27 * 8), 0);
}

TEST_F(Damage, ThrowsIfNoFileDescriptorIsLeftForAPart) {
  const CheckpointReader reader(newest_);
  std::vector<double> out(53);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  const rlimit none_left{static_cast<rlim_t>(lowest_free), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_left), 0);
  EXPECT_THROW(reader.read_rows("weights", "value", 0, 53, out.data()), Error);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  reader.read_rows("weights", "value", 0, 53, out.data());
  EXPECT_EQ(std::memcmp(out.data(), new_[2].bytes.data(), 53 * 8), 0);
}

/// HDF5 looks for the sources of virtual datasets in $HDF5_VDS_PREFIX first, and reads this environment
/// variable once per process. Returns 0 if the rows are right.
int exit_code_with_foreign_vds_prefix() {
  const TemporaryDirectory scratch;
  ::setenv("HDF5_VDS_PREFIX", (scratch.path() / "checkpoint-00000001").c_str(), 1);
  CheckpointDirectory directory(scratch.path());
  save(directory, 1, sample_arrays(1), 2);
  const CheckpointReader reader(save(directory, 2, sample_arrays(50), 2));
  std::vector<double> out(53);
  reader.read_rows("weights", "value", 0, 53, out.data());
  return std::memcmp(out.data(), sample_arrays(50)[2].bytes.data(), 53 * 8) == 0 ? 0 : 1;
}

TEST(DamageDeathTest, IgnoresHdf5VdsPrefix) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process
  EXPECT_EXIT(std::_Exit(exit_code_with_foreign_vds_prefix()), ::testing::ExitedWithCode(0), "");
}

TEST_F(Damage, ListsEveryDamagedCheckpointIfAllAreDamaged) {
  fs::remove(file("part-00001-of-00002.h5"));
  overwrite(scratch_.path() / "checkpoint-00000001" / "manifest.json", "{");
  const auto fault = error_of(Code::data_loss, [&] { open_latest(scratch_.path()); });
  EXPECT_THAT(fault, NamesAll({"checkpoint-00000002", "part-00001-of-00002.h5"}));
  EXPECT_THAT(fault, NamesAll({"checkpoint-00000001", "manifest.json", "JSON"}));
}

TEST_F(Damage, ResumeAcceptsOneCheckpointOrTheDirectoryOfAll) {
  EXPECT_EQ(open_to_resume(scratch_.path()).reader.step(), 2);
  EXPECT_EQ(open_to_resume(scratch_.path().string() + "/").reader.step(), 2);
  EXPECT_EQ(open_to_resume(scratch_.path() / "checkpoint-00000001").reader.step(), 1);
  EXPECT_EQ(open_to_resume(scratch_.path() / "checkpoint-00000001/").reader.step(), 1);
  fs::rename(newest_, scratch_.path() / "renamed-by-the-user");
  EXPECT_EQ(open_to_resume(scratch_.path() / "renamed-by-the-user").reader.step(), 2);
  EXPECT_EQ(open_to_resume(scratch_.path()).reader.step(), 1);
}

TEST_F(Damage, ResumeRejectsADamagedCheckpointGivenByName) {
  fs::remove(file("part-00001-of-00002.h5"));
  EXPECT_THAT(error_of(Code::data_loss, [&] { open_to_resume(newest_); }),
              NamesAll({"part-00001-of-00002.h5"}));
}

TEST_F(Damage, ResumeRejectsAFile) {
  const auto foreign = scratch_.path() / "weights.h5";
  write_foreign_hdf5(foreign);
  EXPECT_THAT(error_of(Code::data_loss, [&] { open_to_resume(foreign); }),
              NamesAll({foreign.string(), "HDF5", "manifest.json"}));
  overwrite(scratch_.path() / "notes.txt", "hello\n");
  EXPECT_THAT(error_of(Code::data_loss, [&] { open_to_resume(scratch_.path() / "notes.txt"); }),
              testing::AllOf(NamesAll({"notes.txt", "manifest.json"}), testing::Not(HasSubstr("HDF5"))));
  EXPECT_THAT(error_of(Code::data_loss, [&] { open_to_resume(file("checkpoint.h5")); }),
              NamesAll({file("checkpoint.h5").string(), "manifest.json"}));
}

TEST(Resume, ThrowsNotFoundWithoutACheckpoint) {
  const TemporaryDirectory scratch;
  EXPECT_THAT(error_of(Code::not_found, [&] { open_to_resume(scratch.path()); }),
              HasSubstr(scratch.path().string()));
  EXPECT_THAT(error_of(Code::not_found, [&] { open_latest(scratch.path() / "none"); }),
              NamesAll({(scratch.path() / "none").string()}));
  EXPECT_THAT(error_of(Code::not_found, [&] { open_to_resume(scratch.path() / "none"); }),
              NamesAll({(scratch.path() / "none").string()}));
  EXPECT_THAT(error_of(Code::not_found, [&] { open_to_resume(scratch.path() / "checkpoint-00000003"); }),
              NamesAll({(scratch.path() / "checkpoint-00000003").string()}));
}

}  // namespace
}  // namespace capstan::io
