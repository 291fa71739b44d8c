// increments_test.cpp -- an increment reads like the equivalent full checkpoint, or is rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "io/checkpoint_sample.hpp"
#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/changed_rows.hpp"
#include "io/hdf5/faults.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/increment_sample.hpp"
#include "io/temporary_directory.hpp"
#include "support/names_all.hpp"

namespace capstan::io {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Changes the bytes of the given rows.
std::vector<SampleArray> changed(std::vector<SampleArray> arrays, const Changes& changes) {
  for (SampleArray& array : arrays) {
    const std::uint64_t bytes = array.row_bytes();
    for (const std::uint64_t row : changes.at(array.variable)) {
      for (std::uint64_t i = 0; i < bytes; ++i) array.bytes[row * bytes + i] ^= static_cast<char>(0x55 + i);
    }
  }
  return arrays;
}

std::filesystem::path save_changes(CheckpointDirectory& directory, std::int64_t step,
                                   const std::vector<SampleArray>& arrays, const Changes& changes, int count,
                                   const std::filesystem::path& base) {
  const auto scratch = directory.begin(step);
  std::vector<PartReport> reports;
  for (int i = 0; i < count; ++i) {
    std::vector<std::vector<char>> memory;
    reports.push_back(write_part(scratch / part_file_name(i, count),
                                 only_changed(part_arrays(arrays, i, count), changes, memory)));
  }
  return directory.publish(step, reports, {.base = Base{base.filename().string(), manifest_checksum(base)}});
}

const Changes kSome{
    {"entities/embedding", {0, 1, 2, 50, 51, 99, 100}}, {"weights", {17}}, {"counts", {}}, {"step", {0}}};

struct Saved {
  TemporaryDirectory scratch;
  CheckpointDirectory directory{scratch.path(), 0};
  std::vector<SampleArray> before = sample_arrays();
  std::filesystem::path base = save(directory, 10, before, 2);
  std::vector<SampleArray> after = changed(before, kSome);
  std::filesystem::path increment = save_changes(directory, 12, after, kSome, 3, base);
};

TEST(Increments, AreReadWithTheirBase) {
  const Saved saved;
  const CheckpointReader reader(saved.increment);
  reader.verify();
  expect_holds(reader, saved.after);
  expect_holds(CheckpointReader(saved.base), saved.before);
  EXPECT_EQ(reader.variable("entities/embedding").changed, std::optional<std::uint64_t>(7));
  EXPECT_EQ(reader.variable("counts").changed, std::optional<std::uint64_t>(0));
  EXPECT_EQ(reader.variable("weights").slots.size(), 2U);
  EXPECT_TRUE(find_faults(saved.increment).empty());
  const auto found = open_latest(saved.scratch.path());
  EXPECT_EQ(found.reader.step(), 12);
}

TEST(Increments, AreSmall) {
  const Saved saved;
  const CheckpointReader reader(saved.increment);
  std::uint64_t bytes = 0;
  for (const PartReport& part : reader.parts()) {
    for (const DatasetReport& dataset : part.datasets) {
      if (dataset.variable == "entities/embedding")
        bytes += dataset.stored() * row_bytes(dataset.shape, dataset.dtype);
    }
  }
  EXPECT_EQ(bytes, 7U * (8 + 28 + 28));
}

TEST(Increments, ReadsAnyRowsForAnyChanges) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    const TemporaryDirectory scratch;
    CheckpointDirectory directory(scratch.path(), 0);
    const auto before = sample_arrays(round);
    Changes changes;
    for (const SampleArray& array : before) {
      if (array.component != kValue) continue;
      auto& rows = changes[array.variable];
      const unsigned share = random() % 4;
      for (std::uint64_t row = 0; row < array.shape[0]; ++row) {
        if (random() % 3 < share) rows.push_back(row);
      }
    }
    const auto after = changed(before, changes);
    const auto base = save(directory, 1, before, 1 + round % 4);
    const auto increment = save_changes(directory, 2, after, changes, 1 + round % 3, base);
    const CheckpointReader reader(increment);
    expect_holds(reader, after);
    for (const SampleArray& array : after) {
      const std::uint64_t first = random() % array.shape[0];
      const std::uint64_t rows = random() % (array.shape[0] - first + 1);
      std::vector<char> out(rows * array.row_bytes());
      reader.read_rows(array.variable, array.component, first, rows, out.data());
      EXPECT_TRUE(std::equal(out.begin(), out.end(),
                             array.bytes.begin() + static_cast<std::ptrdiff_t>(first * array.row_bytes())));
      // Reads of every size.
      ArrayStream stream(reader, {array.variable, array.component, array.dtype, array.shape});
      std::vector<char> streamed;
      std::vector<char> piece(1 + random() % 100);
      while (const std::size_t bytes = stream.read(piece))
        streamed.insert(streamed.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(bytes));
      EXPECT_EQ(streamed, array.bytes);
    }
  }
}

TEST(Increments, HoldAllRowsOfAVariableThatTheirBaseLacks) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path(), 0);
  const auto base = save(directory, 1, {make_array<float>("old", "value", {3, 2}, 1)}, 1);
  const std::vector<SampleArray> after{make_array<float>("new", "value", {4}, 2),
                                       make_array<float>("old", "value", {3, 2}, 1)};
  const CheckpointReader reader(
      save_changes(directory, 2, after, {{"new", {0, 1, 2, 3}}, {"old", {}}}, 2, base));
  expect_holds(reader, after);
  const auto broken = save_changes(directory, 3, after, {{"new", {0, 1, 3}}, {"old", {}}}, 2, base);
  EXPECT_THAT(error_of(Code::data_loss, [&] { (void)CheckpointReader(broken); }),
              NamesAll({"3 of 4 rows", "value", "\"new\"", "checkpoint-00000001"}));
}

TEST(Increments, HaveVersionTwoSoThatOldReadersRejectThem) {
  const Saved saved;
  const auto json = nlohmann::json::parse(file_text(saved.increment / kManifestFile));
  EXPECT_EQ(json.at("version"), 2);
  EXPECT_EQ(json.at("base").at("checkpoint"), "checkpoint-00000010");
  EXPECT_EQ(nlohmann::json::parse(file_text(saved.base / kManifestFile)).at("version"), 1);
}

TEST(Increments, WithoutTheirBaseAreDamaged) {
  const Saved saved;
  std::filesystem::rename(saved.base, saved.scratch.path() / "elsewhere");
  EXPECT_THAT(error_of(Code::data_loss, [&] { (void)CheckpointReader(saved.increment); }),
              NamesAll({saved.increment.filename().string(), "checkpoint-00000010", "missing"}));
  EXPECT_EQ(find_faults(saved.increment).size(), 1U);
  // While a base is replaced, its name has the suffix kReplaced; it is found nevertheless.
  std::filesystem::rename(saved.scratch.path() / "elsewhere", saved.base.string() + std::string(kReplaced));
  expect_holds(CheckpointReader(saved.increment), saved.after);
}

TEST(Increments, OnAnotherBaseAreDamaged) {
  const Saved saved;
  std::filesystem::remove_all(saved.base);
  CheckpointDirectory other(saved.scratch.path(), 0);
  auto arrays = saved.before;
  arrays[0].bytes[0] = static_cast<char>(arrays[0].bytes[0] ^ 1);
  std::filesystem::rename(saved.increment, saved.scratch.path() / "aside");
  save(other, 10, arrays, 2);
  std::filesystem::rename(saved.scratch.path() / "aside", saved.increment);
  EXPECT_THAT(error_of(Code::data_loss, [&] { (void)CheckpointReader(saved.increment); }),
              NamesAll({saved.increment.filename().string(), "checkpoint-00000010", "replaced"}));
  EXPECT_EQ(open_latest(saved.scratch.path()).reader.step(), 10);
}

TEST(Increments, OnADamagedBaseAreDamaged) {
  const Saved saved;
  const CheckpointReader base(saved.base);
  const PartReport& part = base.parts().at(1);
  const auto file = saved.base / part.file;
  std::string bytes = file_text(file);
  bytes[part.datasets.at(0).offset] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_THAT(error_of(Code::data_loss, [&] { CheckpointReader(saved.increment).verify(); }),
              HasSubstr(file.string()));
  const auto faults = find_faults(saved.increment);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].file, "../checkpoint-00000010/" + part.file);
}

TEST(Increments, AFlippedByteIsDetected) {
  const Saved saved;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(saved.increment))
    files.push_back(entry.path());
  ASSERT_EQ(files.size(), 6U);
  for (const auto& file : files) {
    const std::string bytes = file_text(file);
    for (std::size_t at = 0; at < bytes.size(); at += 97) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 4);
      std::ofstream(file, std::ios::binary) << damaged;
      (void)error_of(Code::data_loss, [&] { CheckpointReader(saved.increment).verify(); });
      if (HasFailure()) FAIL() << file << " byte " << at;
    }
    std::ofstream(file, std::ios::binary) << bytes;
  }
  expect_holds(CheckpointReader(saved.increment), saved.after);
}

TEST(Increments, OnAnIncrementAreRejected) {
  Saved saved;
  EXPECT_THAT(error_of(Code::data_loss,
                       [&] { save_changes(saved.directory, 13, saved.after, kSome, 1, saved.increment); }),
              NamesAll({saved.increment.filename().string(), "full checkpoint"}));
}

TEST(Increments, TheirBaseIsKeptBesideItsReplacement) {
  Saved saved;
  const auto other = sample_arrays(7);
  save(saved.directory, 10, other, 1);
  expect_holds(CheckpointReader(saved.base), other);
  expect_holds(CheckpointReader(saved.increment), saved.after);
  EXPECT_TRUE(find_faults(saved.increment).empty());
  // The replaced base is deleted once no increment needs it.
  save(saved.directory, 13, other, 1);
  expect_holds(CheckpointReader(saved.increment), saved.after);
  std::filesystem::remove_all(saved.increment);
  save(saved.directory, 14, other, 1);
  EXPECT_FALSE(std::filesystem::exists(saved.base.string() + std::string(kReplaced)));
}

TEST(Increments, FindTheirBaseFromAnySpellingOfTheirPath) {
  const Saved saved;
  const auto link = saved.scratch.path() / "links" / "best";
  std::filesystem::create_directory(link.parent_path());
  std::filesystem::create_directory_symlink(saved.increment, link);
  expect_holds(CheckpointReader(link), saved.after);
  expect_holds(CheckpointReader(saved.increment / ""), saved.after);
  expect_holds(CheckpointReader(saved.increment / "."), saved.after);
}

TEST(Checkpoints, RejectsAPartThatWasReplacedAfterOpening) {
  Saved saved;
  const CheckpointReader reader(saved.increment);
  save(saved.directory, 12, saved.after, 3);
  std::vector<char> out(saved.after[0].bytes.size());
  EXPECT_THAT(
      error_of(Code::data_loss, [&] { reader.read_rows("entities/embedding", "value", 0, 101, out.data()); }),
      HasSubstr("was replaced after the checkpoint was opened"));
}

std::vector<std::int64_t> steps_of(const std::filesystem::path& scratch) {
  std::vector<std::int64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(scratch)) steps.push_back(entry.step);
  return steps;
}

TEST(Increments, TheirBaseIsKeptAsLongAsTheyAre) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path(), 2);
  const auto arrays = sample_arrays();
  const auto first = save(directory, 1, arrays, 1);
  for (int step = 2; step <= 5; ++step) {
    save_changes(directory, step, arrays, kSome, 1, first);
    for (const CheckpointEntry& entry : directory.list()) CheckpointReader(entry.path).verify();
  }
  EXPECT_THAT(steps_of(scratch.path()), ElementsAre(1, 4, 5));
  const auto second = save(directory, 6, arrays, 1);
  EXPECT_THAT(steps_of(scratch.path()), ElementsAre(1, 5, 6));
  directory.on_publish_step([&](std::string_view phase) {
    if (phase != "delete one") return;
    for (const CheckpointEntry& entry : directory.list()) CheckpointReader(entry.path).verify();
  });
  save_changes(directory, 7, arrays, kSome, 1, second);
  EXPECT_THAT(steps_of(scratch.path()), ElementsAre(6, 7));
}

TEST(Increments, RowNumbersThatDoNotIncreaseAreDamage) {
  const Saved saved;
  // Damage after the checksums were checked.
  const CheckpointReader reader(saved.increment);
  const PartReport& part = reader.parts().at(0);
  const DatasetReport& rows = part.datasets.at(1);
  const DatasetReport& numbers = numbers_of(part, rows);
  const auto file = saved.increment / part.file;
  std::string bytes = file_text(file);
  std::swap_ranges(&bytes[numbers.offset], &bytes[numbers.offset + 8], &bytes[numbers.offset + 8]);
  std::ofstream(file, std::ios::binary) << bytes;
  std::vector<float> out(101 * 7);
  EXPECT_THAT(
      error_of(Code::data_loss, [&] { reader.read_rows("entities/embedding", "value", 0, 101, out.data()); }),
      HasSubstr(file.string()));
}

TEST(Increments, InconsistentPartsAreRejected) {
  Saved saved;
  const auto scratch = saved.directory.begin(20);
  std::vector<std::vector<char>> memory;
  auto arrays = only_changed(part_arrays(saved.after, 0, 1), kSome, memory);
  const Base base{"checkpoint-00000010", manifest_checksum(saved.base)};
  // Without row numbers.
  auto without_numbers = arrays;
  std::erase_if(without_numbers,
                [](const PartArray& a) { return a.component == kChangedRows && a.variable == "weights"; });
  const auto refused = [&](const std::vector<PartArray>& written, std::optional<Base> on) {
    const std::vector<PartReport> reports{write_part(scratch / part_file_name(0, 1), written)};
    return error_of(Code::invalid_argument, [&] { saved.directory.publish(20, reports, {.base = on}); });
  };
  EXPECT_THAT(refused(without_numbers, base),
              AllOf(HasSubstr("\"weights\""), HasSubstr("without row numbers")));
  EXPECT_THAT(refused(arrays, std::nullopt), HasSubstr("expected a base"));
  EXPECT_THAT(refused(part_arrays(saved.before, 0, 1), base), HasSubstr("no row numbers"));
  auto fewer = arrays;
  for (PartArray& array : fewer) {
    if (array.variable == "entities/embedding" && array.component == "accumulator") array.changed = 6;
  }
  EXPECT_THAT(refused(fewer, base), HasSubstr("accumulator of \"entities/embedding\""));
}

}  // namespace
}  // namespace capstan::io
