// restore_test.cpp -- renamed, missing and extra variables; variables that are created later; which ps reads
// which bytes.
// Tests: src/checkpoint/restored_checkpoint.cpp
// Tests: src/strategy/restore_point.hpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "capstan/checkpoint.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/temporary_directory.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/log_text.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Floats = std::vector<float>;

/// A strategy on some ps, and a manager of the directory.
struct RestoreJob {
  RestoreJob(const fs::path& folder, int ps, std::int64_t shards,
             std::vector<std::pair<std::string, std::string>> flags = {})
      : ranks(options(ps, std::move(flags))),
        strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{shards}}),
        checkpoints(strategy, {.directory = folder, .max_to_keep = 0}) {}

  static RankThreadsOptions options(int ps, std::vector<std::pair<std::string, std::string>> flags) {
    int ranks = 2 + ps;
    for (const auto& [name, value] : flags) ranks += name == "spares" ? std::stoi(value) : 0;
    flags.emplace_back("ps", std::to_string(ps));
    return {.ranks = ranks, .flags = std::move(flags)};
  }
  Variable<float> floats(const std::string& name, std::int64_t rows,
                         const Optimizer& optimizer = optimizers::SGD{1}) {
    const auto scope = strategy.scope();
    return Variable<float>(name, Shape{rows}, initializers::constant(0), {.optimizer = optimizer});
  }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  CheckpointManager checkpoints;
};

/// Returns factor, 2 * factor, 3 * factor, ...
Floats counted(std::size_t count, float factor) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = factor * static_cast<float>(i + 1);
  return values;
}

/// A checkpoint of step 1 with "first", 7 elements trained by Adam, and "second", 4 elements.
struct Saved {
  explicit Saved(const fs::path& folder, int ps = 2, std::int64_t step = 1) {
    RestoreJob job(folder, ps, ps);
    auto first_variable = job.floats("first", 7, adam);
    auto second_variable = job.floats("second", 4);
    first_variable.assign(counted(7, 10));
    first_variable.push_dense(counted(7, 1));
    second_variable.assign(counted(4, 100));
    first_variable.flush();
    path = job.checkpoints.save(step);
    first = first_variable.pull();
    first_variable.push_dense(counted(7, -1));
    first_variable.flush();
    first_later = first_variable.pull();
  }
  const Optimizer adam = optimizers::Adam{.learning_rate = 0.5};
  fs::path path;
  Floats first;
  Floats first_later;  // after one more push of counted(7, -1)
  const Floats second = counted(4, 100);
};

class Restore : public testing::Test {
 protected:
  io::TemporaryDirectory folder_;
  Saved saved_{folder_.path()};
};

TEST_F(Restore, RenamesVariables) {
  RestoreJob job(folder_.path(), 3, 3);
  auto mine = job.floats("mine", 7, saved_.adam);
  auto copy = job.floats("copy", 7, saved_.adam);
  auto second = job.floats("second", 4);
  EXPECT_EQ(job.checkpoints.restore_latest({.names = {{"mine", "first"}, {"copy", "first"}}}), 1);
  EXPECT_EQ(mine.pull(), saved_.first);
  EXPECT_EQ(copy.pull(), saved_.first);
  EXPECT_EQ(second.pull(), saved_.second);
  mine.push_dense(counted(7, -1));
  mine.flush();
  EXPECT_EQ(mine.pull(), saved_.first_later) << "slots and steps are restored";
  job.checkpoints.assert_consumed();
}

TEST_F(Restore, ListsAllDifferencesAndChangesNothing) {
  RestoreJob job(folder_.path(), 2, 2);
  auto first = job.floats("first", 8);                         // another shape, another optimizer
  auto other = job.floats("other", 4, optimizers::Adagrad{});  // renamed, another optimizer
  auto fresh = job.floats("fresh", 1);                         // not in the checkpoint
  const auto text = error_of(Code::failed_precondition, [&] {
    (void)job.checkpoints.restore_latest(
        {.names = {{"other", "second"}, {"unused", "nowhere"}}, .allow_extra = false});
  });
  EXPECT_THAT(
      text, HasSubstr("checkpoint-00000001 does not match the program: variable \"first\": found shape (7), "
                      "expected (8); variable \"first\": found optimizer adam("));
  EXPECT_THAT(text,
              HasSubstr("variable \"other\" (saved as \"second\"): found optimizer sgd(learning_rate=1), "
                        "expected adagrad("));
  EXPECT_THAT(
      text,
      HasSubstr(
          "; variable \"fresh\" is not in the checkpoint; variable \"nowhere\" is not in the checkpoint"));
  EXPECT_EQ(first.pull(), Floats(8, 0));
  EXPECT_EQ(other.pull(), Floats(4, 0));
  EXPECT_EQ(fresh.pull(), Floats(1, 0));
  EXPECT_THAT(job.checkpoints.unmatched(), IsEmpty()) << "nothing was restored";
}

TEST_F(Restore, MissingVariablesKeepTheirValuesIfAllowed) {
  RestoreJob job(folder_.path(), 2, 2);
  auto first = job.floats("first", 7, saved_.adam);
  auto second = job.floats("second", 4);
  auto fresh = job.floats("fresh", 3);
  fresh.assign(counted(3, -1));
  const LogText log;
  EXPECT_EQ(job.checkpoints.restore_latest({.allow_missing = true}), 1);
  EXPECT_EQ(fresh.pull(), counted(3, -1));
  EXPECT_EQ(first.pull(), saved_.first);
  EXPECT_THAT(log.text(), HasSubstr("so unchanged: variable \"fresh\""));
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { job.checkpoints.assert_consumed(); }),
              HasSubstr("; only in the program: variable \"fresh\""));
}

TEST_F(Restore, ExtraVariablesAreAnErrorUnlessAllowed) {
  RestoreJob job(folder_.path(), 2, 2);
  auto second = job.floats("second", 4);
  const auto text = error_of(Code::failed_precondition,
                             [&] { (void)job.checkpoints.restore_latest({.allow_extra = false}); });
  EXPECT_THAT(text, HasSubstr("variable \"first\" is not in the program"));
  EXPECT_EQ(second.pull(), Floats(4, 0));
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  EXPECT_EQ(second.pull(), saved_.second);
  EXPECT_THAT(job.checkpoints.unmatched(), ElementsAre("variable \"first\""));
  EXPECT_THAT(
      error_of(Code::failed_precondition, [&] { job.checkpoints.assert_consumed(); }),
      HasSubstr(
          "checkpoint-00000001 does not match the program; only in the checkpoint: variable \"first\""));
}

TEST_F(Restore, LaterVariablesAreRestoredWithTheirSlots) {
  for (const int ps : {1, 2, 3}) {
    SCOPED_TRACE(ps);
    RestoreJob job(folder_.path(), ps, ps);
    auto second = job.floats("second", 4);
    EXPECT_EQ(job.checkpoints.restore_latest(), 1);
    second.assign(Floats(4, 5));
    auto first = job.floats("first", 7, saved_.adam);
    EXPECT_EQ(first.pull(), saved_.first);
    first.push_dense(counted(7, -1));
    first.flush();
    EXPECT_EQ(first.pull(), saved_.first_later);
    EXPECT_EQ(second.pull(), Floats(4, 5)) << "existing variables are not changed";
    job.checkpoints.assert_consumed();
    auto fresh = job.floats("fresh", 2);
    EXPECT_EQ(fresh.pull(), Floats(2, 0));
  }
}

TEST_F(Restore, LaterVariableWithAnInitialArrayIsRestored) {
  RestoreJob job(folder_.path(), 2, 3);
  EXPECT_EQ(job.checkpoints.restore_latest({.names = {{"mine", "second"}}}), 1);
  const auto scope = job.strategy.scope();
  const Variable<float> mine("mine", Array<float>({4}, {9, 9, 9, 9}), {.optimizer = optimizers::SGD{1}});
  EXPECT_EQ(mine.pull(), saved_.second);
}

TEST_F(Restore, RejectsALaterVariableThatDiffersAndAcceptsACorrectedOne) {
  RestoreJob job(folder_.path(), 2, 2);
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { (void)job.floats("second", 5); }),
              testing::AllOf(HasSubstr("checkpoint-00000001"),
                             HasSubstr("variable \"second\": found shape (4), expected (5)")));
  EXPECT_THAT(job.strategy.variables(), IsEmpty());
  EXPECT_EQ(job.floats("second", 4).pull(), saved_.second);
}

TEST_F(Restore, RejectsALaterVariableIfTheCheckpointWasDeleted) {
  RestoreJob job(folder_.path(), 2, 2);
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  fs::rename(saved_.path, folder_.path() / "away");
  EXPECT_THAT(error_of(Code::not_found, [&] { (void)job.floats("second", 4); }),
              testing::AllOf(HasSubstr("variable \"second\""), HasSubstr(saved_.path.string())));
  EXPECT_THAT(job.strategy.variables(), IsEmpty());
  fs::rename(folder_.path() / "away", saved_.path);
  EXPECT_EQ(job.floats("second", 4).pull(), saved_.second);
}

TEST_F(Restore, SecondRestoreReplacesTheFirst) {
  RestoreJob job(folder_.path(), 1, 1);
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  {
    RestoreJob other(folder_.path(), 1, 1);
    auto first = other.floats("first", 2);
    first.assign(Floats{-1, -2});
    other.checkpoints.save(2);
  }
  EXPECT_EQ(job.checkpoints.restore_latest(), 2);
  EXPECT_EQ(job.floats("first", 2).pull(), (Floats{-1, -2}));
  EXPECT_EQ(job.floats("second", 4).pull(), Floats(4, 0)) << "the second checkpoint lacks it";
}

/// Flips a bit of the last row of "second", which the second ps wrote.
void damage(const fs::path& checkpoint) {
  const auto part = checkpoint / io::read_manifest(checkpoint).parts.at(1).file;
  std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const float last = 400;
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(&last), sizeof last));
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(bytes[at] ^ 1));
}

TEST_F(Restore, DetectsADamagedRowAndUsesThePreviousCheckpoint) {
  const Saved newer(folder_.path(), 2, 2);
  damage(newer.path);
  for (const int ps : {1, 2, 3}) {
    SCOPED_TRACE(ps);
    RestoreJob job(folder_.path(), ps, ps);
    auto first = job.floats("first", 7, saved_.adam);
    auto second = job.floats("second", 4);
    const LogText log;
    std::vector<std::string> checked;
    EXPECT_EQ(job.checkpoints.restore_latest([&](const std::string&, const std::string& name) {
      checked.push_back(fs::path(name).filename());
    }),
              1);
    EXPECT_THAT(checked, ElementsAre("checkpoint-00000002", "checkpoint-00000001"));
    EXPECT_EQ(second.pull(), saved_.second);
    EXPECT_EQ(first.pull(), saved_.first);
    EXPECT_THAT(log.text(), HasSubstr("checkpoint-00000002: "));
    EXPECT_THAT(log.text(), HasSubstr(io::read_manifest(newer.path).parts.at(1).file +
                                      " is damaged: the checksum of variables/second/value"));
  }
}

TEST_F(Restore, ChangesNothingIfAllCheckpointsAreDamaged) {
  damage(saved_.path);
  RestoreJob job(folder_.path(), 2, 2);
  auto first = job.floats("first", 7, saved_.adam);
  auto second = job.floats("second", 4);
  EXPECT_THAT(error_of(Code::data_loss, [&] { (void)job.checkpoints.restore_latest(); }),
              HasSubstr("every checkpoint in "));
  EXPECT_EQ(first.pull(), Floats(7, 0)) << "although its rows are intact";
  EXPECT_EQ(second.pull(), Floats(4, 0));
}

TEST_F(Restore, DetectsDamageInUnmatchedVariables) {
  const Saved newer(folder_.path(), 2, 2);
  damage(newer.path);
  RestoreJob job(folder_.path(), 2, 2);
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  EXPECT_EQ(job.floats("second", 4).pull(), saved_.second);
}

TEST_F(Restore, UsesTheProgramsLearningRateAndLogsIt) {
  RestoreJob job(folder_.path(), 2, 2);
  auto second = job.floats("second", 4, optimizers::SGD{2});
  const LogText log;
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  EXPECT_THAT(log.text(), testing::AllOf(HasSubstr("variable \"second\""), HasSubstr("sgd(learning_rate=1)"),
                                         HasSubstr("sgd(learning_rate=2)")));
  second.push_dense(Floats(4, 1));
  second.flush();
  EXPECT_EQ(second.pull(), (Floats{98, 198, 298, 398}));
}

TEST_F(Restore, RestoresALearningRateThatWasSetAndLogsIt) {
  RestoreJob job(folder_.path(), 2, 2);
  auto second = job.floats("second", 4, optimizers::SGD{1});
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  second.set_learning_rate(-8);
  (void)job.checkpoints.save(2);
  second.set_learning_rate(3);
  const LogText log;
  EXPECT_EQ(job.checkpoints.restore_latest(), 2);
  EXPECT_THAT(log.text(), HasSubstr("variable \"second\" continues with learning rate -8, which was set"));
  second.push_dense(Floats(4, 1));
  second.flush();
  EXPECT_EQ(second.pull(), (Floats{108, 208, 308, 408}));
}

/// Bytes that this process has read from files so far.
std::uint64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string word;
  std::uint64_t bytes = 0;
  file >> word >> bytes;
  return bytes;
}

TEST(RestoreCost, ReadsEachByteOnceForItsChecksumAndOnceForItsShard) {
  constexpr std::int64_t kRows = 1 << 20;
  constexpr std::uint64_t kBytes = 3 * kRows * sizeof(float);  // with Adam's slots
  const io::TemporaryDirectory folder;
  {
    RestoreJob job(folder.path(), 2, 2);
    auto v = job.floats("v", kRows, optimizers::Adam{});
    auto unused = job.floats("unused", 1);
    (void)job.checkpoints.save(1);
  }
  for (const int ps : {1, 2, 3, 5}) {
    RestoreJob job(folder.path(), ps, ps);
    auto v = job.floats("v", kRows, optimizers::Adam{});
    const std::uint64_t before = bytes_read();
    EXPECT_EQ(job.checkpoints.restore_latest(), 1);
    const std::uint64_t read = bytes_read() - before;
    EXPECT_GE(read, 2 * kBytes) << ps;
    EXPECT_LT(read, 2 * kBytes + (1 << 20)) << ps << " ps";
  }
}

TEST_F(Restore, FailoverUsesACheckpointThatContainsAllVariables) {
  const auto source = [](RestoreJob& job) -> std::string {
    try {
      return job.strategy.implementation().contents().failover_of(0).directory;
    } catch (const Error& error) {
      return error.what();
    }
  };
  RestoreJob job(folder_.path(), 2, 2, {{"spares", "1"}});
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  auto first = job.floats("first", 7, saved_.adam);
  auto second = job.floats("second", 4);
  EXPECT_EQ(source(job), saved_.path.string());
  EXPECT_EQ(job.checkpoints.restore_latest({.names = {{"second", "second"}}}), 1);
  EXPECT_EQ(source(job), saved_.path.string());
  auto fresh = job.floats("fresh", 4);
  EXPECT_THAT(source(job), HasSubstr("\"fresh\" is not in the last checkpoint"));
  EXPECT_EQ(job.checkpoints.restore_latest({.names = {{"fresh", "second"}}}), 1);
  EXPECT_THAT(source(job), HasSubstr("no checkpoint"));
  const auto saved = job.checkpoints.save(2);
  EXPECT_EQ(source(job), saved.string());
}

}  // namespace
}  // namespace capstan
