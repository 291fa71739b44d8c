// restore_test.cpp -- renamed, missing and extra variables; variables that are created later; the
// number of bytes that a restore reads.
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
#include "support/names_all.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

using Floats = std::vector<float>;

/// A strategy on `ps` parameter servers, and a checkpoint manager of the directory.
struct RestoreJob {
  RestoreJob(const fs::path& directory, int ps, std::int64_t shards,
             std::vector<std::pair<std::string, std::string>> flags = {})
      : ranks(options(ps, std::move(flags))),
        strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{shards}}),
        checkpoints(strategy, {.directory = directory, .max_to_keep = 0}) {}

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
Floats multiples(std::size_t count, float factor) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = factor * static_cast<float>(i + 1);
  return values;
}

/// A checkpoint of step 1 with "first", 7 elements trained by Adam, and "second", 4 elements.
struct Saved {
  explicit Saved(const fs::path& directory, int ps = 2, std::int64_t step = 1) {
    RestoreJob job(directory, ps, ps);
    auto first_variable = job.floats("first", 7, adam);
    auto second_variable = job.floats("second", 4);
    first_variable.assign(multiples(7, 10));
    first_variable.push_dense(multiples(7, 1));
    second_variable.assign(multiples(4, 100));
    first_variable.flush();
    path = job.checkpoints.save(step);
    first = first_variable.pull();
    first_variable.push_dense(multiples(7, -1));
    first_variable.flush();
    first_later = first_variable.pull();
  }
  const Optimizer adam = optimizers::Adam{.learning_rate = 0.5};
  fs::path path;
  Floats first;
  Floats first_later;  // after one more push of multiples(7, -1)
  const Floats second = multiples(4, 100);
};

class Restore : public testing::Test {
 protected:
  io::TemporaryDirectory directory_;
  Saved saved_{directory_.path()};
};

TEST_F(Restore, RenamesVariables) {
  RestoreJob job(directory_.path(), 3, 3);
  auto renamed = job.floats("renamed", 7, saved_.adam);
  auto copy = job.floats("copy", 7, saved_.adam);
  auto second = job.floats("second", 4);
  EXPECT_EQ(job.checkpoints.restore_latest({.names = {{"renamed", "first"}, {"copy", "first"}}}), 1);
  EXPECT_EQ(renamed.pull(), saved_.first);
  EXPECT_EQ(copy.pull(), saved_.first);
  EXPECT_EQ(second.pull(), saved_.second);
  renamed.push_dense(multiples(7, -1));
  renamed.flush();
  EXPECT_EQ(renamed.pull(), saved_.first_later) << "slots and steps are restored";
  job.checkpoints.assert_consumed();
}

TEST_F(Restore, ListsAllDifferencesAndChangesNothing) {
  RestoreJob job(directory_.path(), 2, 2);
  auto first = job.floats("first", 8);                         // another shape, another optimizer
  auto other = job.floats("other", 4, optimizers::Adagrad{});  // renamed, another optimizer
  auto fresh = job.floats("fresh", 1);                         // not in the checkpoint
  const auto text = error_of(Code::failed_precondition, [&] {
    (void)job.checkpoints.restore_latest(
        {.names = {{"other", "second"}, {"unused", "nowhere"}}, .allow_extra = false});
  });
  EXPECT_THAT(text, NamesAll({"checkpoint-00000001", "variable \"first\"", "(7)", "(8)", "adam"}));
  EXPECT_THAT(text, NamesAll({"variable \"other\"", "\"second\"", "sgd(learning_rate=1)", "adagrad"}));
  EXPECT_THAT(text, NamesAll({"variable \"fresh\"", "variable \"nowhere\""}));
  EXPECT_EQ(first.pull(), Floats(8, 0));
  EXPECT_EQ(other.pull(), Floats(4, 0));
  EXPECT_EQ(fresh.pull(), Floats(1, 0));
  EXPECT_THAT(job.checkpoints.unmatched(), IsEmpty()) << "nothing was restored";
}

TEST_F(Restore, MissingVariablesKeepTheirValuesIfAllowed) {
  RestoreJob job(directory_.path(), 2, 2);
  auto first = job.floats("first", 7, saved_.adam);
  auto second = job.floats("second", 4);
  auto fresh = job.floats("fresh", 3);
  fresh.assign(multiples(3, -1));
  const LogText log;
  EXPECT_EQ(job.checkpoints.restore_latest({.allow_missing = true}), 1);
  EXPECT_EQ(fresh.pull(), multiples(3, -1));
  EXPECT_EQ(first.pull(), saved_.first);
  EXPECT_THAT(log.text(), NamesAll({"checkpoint-00000001", "variable \"fresh\""}));
  EXPECT_THAT(job.checkpoints.unmatched(), IsEmpty());
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { job.checkpoints.assert_consumed(); }),
              NamesAll({"checkpoint-00000001", "variable \"fresh\""}));
}

TEST_F(Restore, ExtraVariablesAreAnErrorUnlessAllowed) {
  RestoreJob job(directory_.path(), 2, 2);
  auto second = job.floats("second", 4);
  const auto text = error_of(Code::failed_precondition,
                             [&] { (void)job.checkpoints.restore_latest({.allow_extra = false}); });
  EXPECT_THAT(text, NamesAll({"checkpoint-00000001", "variable \"first\""}));
  EXPECT_EQ(second.pull(), Floats(4, 0));
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  EXPECT_EQ(second.pull(), saved_.second);
  EXPECT_THAT(job.checkpoints.unmatched(), ElementsAre("variable \"first\""));
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { job.checkpoints.assert_consumed(); }),
              NamesAll({"checkpoint-00000001", "variable \"first\""}));
}

TEST_F(Restore, LaterVariablesAreRestoredWithTheirSlots) {
  for (const int ps : {1, 2, 3}) {
    SCOPED_TRACE(ps);
    RestoreJob job(directory_.path(), ps, ps);
    auto second = job.floats("second", 4);
    EXPECT_EQ(job.checkpoints.restore_latest(), 1);
    second.assign(Floats(4, 5));
    auto first = job.floats("first", 7, saved_.adam);
    EXPECT_EQ(first.pull(), saved_.first);
    first.push_dense(multiples(7, -1));
    first.flush();
    EXPECT_EQ(first.pull(), saved_.first_later);
    EXPECT_EQ(second.pull(), Floats(4, 5)) << "existing variables are not changed";
    job.checkpoints.assert_consumed();
    auto fresh = job.floats("fresh", 2);
    EXPECT_EQ(fresh.pull(), Floats(2, 0));
  }
}

TEST_F(Restore, LaterVariableWithAnInitialArrayIsRestored) {
  RestoreJob job(directory_.path(), 2, 3);
  EXPECT_EQ(job.checkpoints.restore_latest({.names = {{"renamed", "second"}}}), 1);
  const auto scope = job.strategy.scope();
  const Variable<float> renamed("renamed", Array<float>({4}, {9, 9, 9, 9}),
                                {.optimizer = optimizers::SGD{1}});
  EXPECT_EQ(renamed.pull(), saved_.second);
}

TEST_F(Restore, RejectsALaterVariableThatDiffersAndAcceptsACorrectedOne) {
  RestoreJob job(directory_.path(), 2, 2);
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { (void)job.floats("second", 5); }),
              NamesAll({"checkpoint-00000001", "variable \"second\"", "(4)", "(5)"}));
  EXPECT_THAT(job.strategy.variables(), IsEmpty());
  EXPECT_EQ(job.floats("second", 4).pull(), saved_.second);
}

TEST_F(Restore, RejectsALaterVariableIfTheCheckpointWasDeleted) {
  RestoreJob job(directory_.path(), 2, 2);
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  fs::rename(saved_.path, directory_.path() / "moved");
  EXPECT_THAT(error_of(Code::not_found, [&] { (void)job.floats("second", 4); }),
              NamesAll({"variable \"second\"", saved_.path.string()}));
  EXPECT_THAT(job.strategy.variables(), IsEmpty());
  fs::rename(directory_.path() / "moved", saved_.path);
  EXPECT_EQ(job.floats("second", 4).pull(), saved_.second);
}

TEST_F(Restore, SecondRestoreReplacesTheFirst) {
  RestoreJob job(directory_.path(), 1, 1);
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  {
    RestoreJob other(directory_.path(), 1, 1);
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
  const Saved newer(directory_.path(), 2, 2);
  damage(newer.path);
  for (const int ps : {1, 2, 3}) {
    SCOPED_TRACE(ps);
    RestoreJob job(directory_.path(), ps, ps);
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
    EXPECT_THAT(log.text(), NamesAll({"checkpoint-00000002", io::read_manifest(newer.path).parts.at(1).file,
                                      "variables/second/value"}));
  }
}

TEST_F(Restore, ChangesNothingIfAllCheckpointsAreDamaged) {
  damage(saved_.path);
  RestoreJob job(directory_.path(), 2, 2);
  auto first = job.floats("first", 7, saved_.adam);
  auto second = job.floats("second", 4);
  EXPECT_THAT(error_of(Code::data_loss, [&] { (void)job.checkpoints.restore_latest(); }),
              NamesAll({directory_.path().string(), "variables/second/value"}));
  EXPECT_EQ(first.pull(), Floats(7, 0)) << "although its rows are intact";
  EXPECT_EQ(second.pull(), Floats(4, 0));
}

TEST_F(Restore, DetectsDamageInUnmatchedVariables) {
  const Saved newer(directory_.path(), 2, 2);
  damage(newer.path);
  RestoreJob job(directory_.path(), 2, 2);
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  EXPECT_EQ(job.floats("second", 4).pull(), saved_.second);
}

TEST_F(Restore, UsesTheProgramsLearningRateAndLogsIt) {
  RestoreJob job(directory_.path(), 2, 2);
  auto second = job.floats("second", 4, optimizers::SGD{2});
  const LogText log;
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  EXPECT_THAT(log.text(), NamesAll({"variable \"second\"", "sgd(learning_rate=1)", "sgd(learning_rate=2)"}));
  second.push_dense(Floats(4, 1));
  second.flush();
  EXPECT_EQ(second.pull(), (Floats{98, 198, 298, 398}));
}

TEST_F(Restore, RestoresALearningRateThatWasSetAndLogsIt) {
  RestoreJob job(directory_.path(), 2, 2);
  auto second = job.floats("second", 4, optimizers::SGD{1});
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  second.set_learning_rate(-8);
  (void)job.checkpoints.save(2);
  second.set_learning_rate(3);
  const LogText log;
  EXPECT_EQ(job.checkpoints.restore_latest(), 2);
  EXPECT_THAT(log.text(), NamesAll({"variable \"second\"", "-8"}));
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
  const io::TemporaryDirectory directory;
  {
    RestoreJob job(directory.path(), 2, 2);
    auto v = job.floats("v", kRows, optimizers::Adam{});
    auto unused = job.floats("unused", 1);
    (void)job.checkpoints.save(1);
  }
  for (const int ps : {1, 2, 3, 5}) {
    RestoreJob job(directory.path(), ps, ps);
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
  RestoreJob job(directory_.path(), 2, 2, {{"spares", "1"}});
  EXPECT_EQ(job.checkpoints.restore_latest(), 1);
  auto first = job.floats("first", 7, saved_.adam);
  auto second = job.floats("second", 4);
  EXPECT_EQ(source(job), saved_.path.string());
  EXPECT_EQ(job.checkpoints.restore_latest({.names = {{"second", "second"}}}), 1);
  EXPECT_EQ(source(job), saved_.path.string());
  auto fresh = job.floats("fresh", 4);
  EXPECT_THAT(source(job), NamesAll({"\"fresh\"", saved_.path.string()}));
  EXPECT_EQ(job.checkpoints.restore_latest({.names = {{"fresh", "second"}}}), 1);
  EXPECT_THAT(source(job), NamesAll({"CheckpointManager"}));
  const auto saved = job.checkpoints.save(2);
  EXPECT_EQ(source(job), saved.string());
}

}  // namespace
}  // namespace capstan
