// checkpoint_directory_test.cpp -- publishing, retention, and checks before publishing.
// Tests: io/hdf5/coverage.cpp
#include "io/hdf5/checkpoint_directory.hpp"

#include <gmock/gmock.h>

#include <cerrno>
#include <cstring>

#include "checkpoint_sample.hpp"
#include "support/names_all.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::int64_t> steps_in(const CheckpointDirectory& directory) {
  std::vector<std::int64_t> steps;
  for (const CheckpointEntry& entry : directory.list()) steps.push_back(entry.step);
  return steps;
}

std::vector<std::string> names_in(const fs::path& scratch) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch)) names.push_back(entry.path().filename().string());
  return names;
}

TEST(CheckpointDirectory, PublishesTheDocumentedFiles) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path() / "run");
  const auto saved = save(directory, 12, sample_arrays(), 2);
  EXPECT_EQ(saved, scratch.path() / "run" / "checkpoint-00000012");
  EXPECT_THAT(names_in(saved), UnorderedElementsAre("part-00000-of-00002.h5", "part-00001-of-00002.h5",
                                                    "checkpoint.h5", "manifest.json", "manifest.xxh3"));
  EXPECT_THAT(names_in(scratch.path() / "run"), UnorderedElementsAre("checkpoint-00000012", "latest"));
  EXPECT_EQ(file_text(scratch.path() / "run" / "latest"), "checkpoint-00000012\n");
}

TEST(CheckpointDirectory, KeepsTheNewest) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path(), 3);
  EXPECT_FALSE(directory.latest());
  for (const std::int64_t step : {5, 10, 15, 20, 100'000'000}) save(directory, step, sample_arrays(), 1);
  EXPECT_THAT(steps_in(directory), ElementsAre(15, 20, 100'000'000));
  EXPECT_EQ(directory.latest()->path, scratch.path() / "checkpoint-100000000");
  EXPECT_THAT(names_in(scratch.path()), UnorderedElementsAre("checkpoint-00000015", "checkpoint-00000020",
                                                             "checkpoint-100000000", "latest"));
}

TEST(CheckpointDirectory, KeepsOneOrAll) {
  const TemporaryDirectory scratch;
  CheckpointDirectory all(scratch.path(), 0);
  for (std::int64_t step = 0; step < 7; ++step) save(all, step, sample_arrays(), 1);
  EXPECT_THAT(steps_in(all), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  CheckpointDirectory one(scratch.path(), 1);
  save(one, 7, sample_arrays(), 1);
  EXPECT_THAT(steps_in(one), ElementsAre(7));
  error_of(Code::invalid_argument, [&] { CheckpointDirectory(scratch.path(), -1); });
  error_of(Code::invalid_argument, [&] { CheckpointDirectory("", 1); });
}

TEST(CheckpointDirectory, KeepsANewCheckpointWithTheLowestStep) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path(), 2);
  save(directory, 50, sample_arrays(), 1);
  save(directory, 60, sample_arrays(), 1);
  save(directory, 1, sample_arrays(), 1);  // a run that restarted in the same directory
  EXPECT_THAT(steps_in(directory), ElementsAre(1, 60));
}

TEST(CheckpointDirectory, ReplacesACheckpointOfTheSameStep) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path(), 1);
  save(directory, 3, sample_arrays(1), 3);
  save(directory, 3, sample_arrays(50), 2);
  expect_holds(open_latest(scratch.path()).reader, sample_arrays(50));
  EXPECT_THAT(names_in(scratch.path()), UnorderedElementsAre("checkpoint-00000003", "latest"));
}

TEST(CheckpointDirectory, IgnoresOtherFiles) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path(), 2);
  for (const char* name :
       {"checkpoint-1", "checkpoint-0000001x", "checkpoint-000000001", "checkpoint--0000001",
        "checkpoint-99999999999999999999", "xcheckpoint-00000001", "logs"}) {
    fs::create_directory(scratch.path() / name);
  }
  scratch.write("checkpoint-00000009", "a file");
  save(directory, 2, sample_arrays(), 1);
  EXPECT_THAT(steps_in(directory), ElementsAre(2));
  EXPECT_TRUE(fs::exists(scratch.path() / "logs"));
  EXPECT_TRUE(fs::exists(scratch.path() / "checkpoint-1"));
}

TEST(CheckpointDirectory, TwoDirectoriesInOneProcessAreIndependent) {
  const TemporaryDirectory scratch;
  CheckpointDirectory a(scratch.path() / "a", 1), b(scratch.path() / "b", 1);
  const auto parts_a = a.begin(1), parts_b = b.begin(1);
  const auto reports_a = write_parts(parts_a, sample_arrays(1), 2),
             reports_b = write_parts(parts_b, sample_arrays(50), 2);
  b.publish(1, reports_b);
  a.publish(1, reports_a);
  const auto in_a = open_latest(a.path()), in_b = open_latest(b.path());
  expect_holds(in_a.reader, sample_arrays(1));
  expect_holds(in_b.reader, sample_arrays(50));
}

TEST(CheckpointDirectory, BeginRemovesTheRemainsOfACrash) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  write_parts(directory.begin(4), sample_arrays(), 2);  // never published
  fs::create_directory(scratch.path() / "checkpoint-00000003.deleted");
  EXPECT_TRUE(directory.list().empty());
  const auto parts = directory.begin(4);
  EXPECT_EQ(parts, scratch.path() / "checkpoint-00000004.tmp");
  EXPECT_TRUE(fs::is_empty(parts));
  EXPECT_THAT(names_in(scratch.path()), ElementsAre("checkpoint-00000004.tmp"));
  error_of(Code::invalid_argument, [&] { directory.begin(-1); });
}

/// `change` invalidates the reports of two complete parts; publish must throw an Error with `words` and
/// publish nothing.
void expect_publish_refused(const std::string& words,
                            const std::function<void(std::vector<PartReport>&)>& change,
                            Code code = Code::invalid_argument) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  auto reports = write_parts(directory.begin(1), sample_arrays(), 2);
  change(reports);
  EXPECT_THAT(error_of(code, [&] { directory.publish(1, reports); }), HasSubstr(words));
  EXPECT_TRUE(directory.list().empty());
  EXPECT_FALSE(fs::exists(scratch.path() / "latest"));
}

DatasetReport& dataset(std::vector<PartReport>& reports, std::size_t part, const std::string& variable) {
  for (DatasetReport& found : reports[part].datasets) {
    if (found.variable == variable && found.component == "value") return found;
  }
  throw std::logic_error("no such dataset");
}

TEST(Publish, RejectsPartsThatDoNotCoverEveryRowOnce) {
  expect_publish_refused("value of \"weights\": rows 27 to 53 are missing", [](auto& reports) {
    std::erase_if(reports[1].datasets,
                  [](const auto& d) { return d.variable == "weights" && d.component == "value"; });
  });
  expect_publish_refused("value of \"weights\": rows 0 to 27 are missing", [](auto& reports) {
    std::erase_if(reports[0].datasets,
                  [](const auto& d) { return d.variable == "weights" && d.component == "value"; });
  });
  expect_publish_refused("m of \"weights\": rows 27 to 53 are missing", [](auto& reports) {
    std::erase_if(reports[1].datasets, [](const auto& d) { return d.component == "m"; });
  });
  expect_publish_refused("value of \"weights\": missing from all parts", [](auto& reports) {
    for (auto& part : reports) {
      std::erase_if(part.datasets,
                    [](const auto& d) { return d.variable == "weights" && d.component == "value"; });
    }
  });
  expect_publish_refused("rows 27 to 28 are missing",
                         [](auto& reports) { dataset(reports, 1, "weights").first_row += 1; });
  expect_publish_refused("row 26 is duplicated",
                         [](auto& reports) { dataset(reports, 1, "weights").first_row -= 1; });
  expect_publish_refused("past the last row",
                         [](auto& reports) { dataset(reports, 1, "weights").rows += 1; });
  expect_publish_refused("differ in dtype",
                         [](auto& reports) { dataset(reports, 1, "weights").dtype = DType::int64; });
  expect_publish_refused("differ in shape",
                         [](auto& reports) { dataset(reports, 1, "weights").shape = {54}; });
  expect_publish_refused("differ in optimizer",
                         [](auto& reports) { dataset(reports, 1, "weights").optimizer = "SGD"; });
}

TEST(Publish, RejectsAnIncompleteSetOfParts) {
  expect_publish_refused("no parts", [](auto& reports) { reports.clear(); });
  expect_publish_refused("not the name of one of 1 parts", [](auto& reports) { reports.pop_back(); });
  expect_publish_refused("part-00000-of-00002.h5 is given twice",
                         [](auto& reports) { reports[1] = reports[0]; });
  expect_publish_refused("not the name of one of 2 parts",
                         [](auto& reports) { reports[1].file = "../part-00001-of-00002.h5"; });
  expect_publish_refused("not the name of one of 2 parts",
                         [](auto& reports) { reports[1].file = "part-00002-of-00002.h5"; });
  expect_publish_refused(
      "bytes", [](auto& reports) { reports[1].bytes += 1; }, Code::data_loss);
}

TEST(Publish, RejectsStateThatIsNotJson) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  const auto reports = write_parts(directory.begin(1), sample_arrays(), 1);
  error_of(Code::invalid_argument, [&] { directory.publish(1, reports, {.user_state = "epoch 3"}); });
  error_of(Code::invalid_argument, [&] { directory.publish(1, reports, {.user_state = ""}); });
  error_of(Code::invalid_argument, [&] { directory.publish(1, reports, {.settings = "[]"}); });
  EXPECT_TRUE(directory.list().empty());
}

/// A fenced ps continues to write while its successor writes the published part.
TEST(Publish, KeepsThePartsOfItsAttemptAndRemovesOthers) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  const auto parts = directory.begin(1);
  const auto arrays = sample_arrays(), of_the_fenced = sample_arrays(2);
  std::vector<PartReport> reports;
  for (int ps = 0; ps < 2; ++ps) {
    reports.push_back(write_part(parts / part_file_name(ps, 2, 7), part_arrays(arrays, ps, 2)));
    (void)write_part(parts / part_file_name(ps, 2, 6), part_arrays(of_the_fenced, ps, 2));
  }
  const auto saved = directory.publish(1, reports);
  EXPECT_THAT(names_in(saved), UnorderedElementsAre(reports[0].file, reports[1].file, "checkpoint.h5",
                                                    "manifest.json", "manifest.xxh3"));
  expect_holds(open_latest(scratch.path()).reader, arrays);
}

TEST(Publish, RejectsAPartThatWasRemovedMeanwhile) {
  const TemporaryDirectory scratch;
  CheckpointDirectory directory(scratch.path());
  const auto parts = directory.begin(1);
  const auto reports = write_parts(parts, sample_arrays(), 2);
  fs::remove(parts / reports[1].file);
  EXPECT_THAT(error_of(Code::data_loss, [&] { directory.publish(1, reports); }),
              NamesAll({"part-00001-of-00002.h5"}));
}

TEST(CheckWritable, CreatesTheDirectoryAndLeavesItEmpty) {
  const TemporaryDirectory scratch;
  const CheckpointDirectory directory(scratch.path() / "a" / "b");
  directory.check_writable();
  directory.check_writable();
  EXPECT_TRUE(fs::is_empty(scratch.path() / "a" / "b"));
}

TEST(CheckWritable, NamesADirectoryThatIsNotWritable) {
  const TemporaryDirectory scratch;
  scratch.write("file", "x");
  // Unlike permission bits, these stop root.
  for (const fs::path& path : {scratch.path() / "file", scratch.path() / "file" / "below",
                               fs::path("/proc/checkpoints"), fs::path("/proc/self/task")}) {
    const auto fault = error_of(Code::permission_denied, [&] { CheckpointDirectory(path).check_writable(); });
    EXPECT_THAT(fault, NamesAll({path.string(), "--checkpoint-dir"}));
  }
  EXPECT_THAT(error_of(Code::permission_denied,
                       [&] { CheckpointDirectory(scratch.path() / "file" / "x").check_writable(); }),
              NamesAll({(scratch.path() / "file" / "x").string(), std::strerror(ENOTDIR)}));
  error_of(Code::permission_denied, [&] { CheckpointDirectory(scratch.path() / "file" / "x").begin(1); });
}

}  // namespace
}  // namespace capstan::io
