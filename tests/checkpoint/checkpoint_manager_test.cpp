// checkpoint_manager_test.cpp -- N ps save and M ps restore; differences are listed in one error.
// Tests: src/checkpoint/checkpoint_writer.cpp
// Tests: src/strategy/save_progress.cpp
// Tests: src/strategy/ps_contents.cpp
// Tests: src/ps/durability/shard_file_writer.cpp
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "capstan/checkpoint.hpp"
#include "capstan/variable_options.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/temporary_directory.hpp"
#include "strategy/checkpointed_state.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

/// A program with three variables on `ps` parameter servers.
struct Program {
  explicit Program(int ps, std::int64_t shards = 0)
      : ranks({.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}}),
        strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{shards > 0 ? shards : ps}}),
        scope(std::in_place, &strategy.implementation()),
        embedding("model/embedding", Shape{10, 3}, initializers::normal(0, 1, 3),
                  {optimizers::Adam{.learning_rate = 0.1}}),
        bias("bias", Shape{7}, {}, {optimizers::Adagrad{.learning_rate = 0.5}}),
        seen("seen", Shape{2}, {}, {optimizers::SGD{.learning_rate = -1}}) {
    scope.reset();
  }

  void train(int steps) {
    for (int step = 0; step < steps; ++step) {
      std::vector<float> gradient(30);
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 5) - 1.5F;
      embedding.push_dense(gradient);
      bias.push(std::vector<std::int64_t>{6, 0, 3}, std::vector<double>{1, -2, 3});
      seen.push_dense(std::vector<std::int64_t>{1, 10});
    }
    embedding.flush();
  }
  auto state() const { return std::tuple(embedding.pull(), bias.pull(), seen.pull()); }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  std::optional<ParameterServerStrategy::Scope> scope;  // while variables are created
  Variable<float> embedding;
  Variable<double> bias;
  Variable<std::int64_t> seen;
};

TEST(CheckpointManager, CheckpointIsRestoredByAnyNumberOfPs) {
  for (int writers = 1; writers <= 3; ++writers) {
    const io::TemporaryDirectory directory;
    Program first(writers);
    CheckpointManager saving(first.strategy, {.directory = directory.path()});
    first.train(3);
    const auto path = saving.save(12, "{\"epoch\":3}");
    const auto saved = first.state();
    first.train(2);
    const auto later = first.state();
    ASSERT_NE(saved, later);
    for (int readers = 1; readers <= 3; ++readers) {
      SCOPED_TRACE(std::to_string(writers) + " ps saved, " + std::to_string(readers) + " restore");
      Program second(readers);
      CheckpointManager restoring(second.strategy, {.directory = directory.path()});
      second.train(1);
      EXPECT_EQ(restoring.restore_latest(), std::optional<std::int64_t>(12));
      EXPECT_EQ(restoring.user_state(), "{\"epoch\":3}");
      EXPECT_EQ(restoring.restored_from(), path);
      EXPECT_EQ(second.state(), saved);
      // Slots and steps are restored too, so training continues identically.
      second.train(2);
      EXPECT_EQ(second.state(), later);
    }
  }
}

template <class T>
Variable<T> variable_of(const std::string& name, const Shape& shape, const Optimizer& optimizer) {
  return Variable<T>(name, shape, initializers::constant(1), {.optimizer = optimizer});
}

TEST(CheckpointManager, RestoresEmptyVariables) {
  const io::TemporaryDirectory directory;
  const auto run = [&](int ps, bool save) {
    const RankThreads ranks({.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}});
    ParameterServerStrategy strategy(ranks.cluster());
    const auto scope = strategy.scope();
    const auto rows = variable_of<float>("rows", {0, 3}, optimizers::Adam{});
    const auto columns = variable_of<double>("columns", {4, 0}, optimizers::Adagrad{});
    const auto empty = variable_of<std::int64_t>("empty", {0}, optimizers::SGD{1});
    const auto full = variable_of<float>("full", {3}, optimizers::SGD{});
    CheckpointManager manager(strategy, {.directory = directory.path()});
    if (save) {
      full.assign(std::vector<float>{1, 2, 3});
      manager.save(1);
    } else {
      EXPECT_EQ(manager.restore_latest(), std::optional<std::int64_t>(1));
    }
    return std::tuple(rows.read(), columns.read(), empty.read(), full.read());
  };
  for (int writers = 1; writers <= 3; ++writers) {
    const auto saved = run(writers, true);
    io::CheckpointReader(directory.path() / "checkpoint-00000001").verify();
    for (int readers = 1; readers <= 3; ++readers) EXPECT_EQ(run(readers, false), saved) << readers;
    std::filesystem::remove_all(directory.path() / "checkpoint-00000001");
  }
}

TEST(CheckpointManager, RestoresEveryDtypeAndRank) {
  const io::TemporaryDirectory directory;
  const auto run = [&](int ps, bool save) {
    const RankThreads ranks({.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}});
    ParameterServerStrategy strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{ps}});
    const auto scope = strategy.scope();
    const auto adam = optimizers::Adam{.learning_rate = 0.1};
    const auto half = variable_of<float16>("half", {3, 2, 2}, adam);
    const auto brain = variable_of<bfloat16>("brain", {5}, adam);
    const auto integers = variable_of<std::int32_t>("integers", {4, 1, 3}, optimizers::SGD{-1});
    const auto flags = variable_of<bool>("flags", {3, 2}, optimizers::SGD{});
    const auto scalar = variable_of<double>("scalar", Shape{}, adam);
    CheckpointManager manager(strategy, {.directory = directory.path()});
    const auto train = [&](float by) {
      half.push_dense(std::vector<float16>(12, float16(by)));
      brain.push(std::vector<std::int64_t>{4, 1}, std::vector<bfloat16>(2, bfloat16(by)));
      integers.push(std::vector<std::int64_t>{2}, std::vector<std::int32_t>{1, 2, 3});
      scalar.push_dense(std::vector<double>{by});
      half.flush();
    };
    if (save) {
      train(1);
      flags.scatter_update(std::vector<std::int64_t>{1}, std::vector<std::uint8_t>{0, 1});
      manager.save(1);
    } else {
      EXPECT_EQ(manager.restore_latest(), std::optional<std::int64_t>(1));
    }
    train(-0.5F);  // the result depends on slots and steps
    return std::tuple(half.read(), brain.read(), integers.read(), flags.read(), scalar.read());
  };
  const auto expected = run(2, true);
  EXPECT_EQ(std::get<3>(expected), Array<bool>({3, 2}, {1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(std::get<2>(expected).values[7], 5);  // 1 + 2 + 2
  for (const int ps : {1, 2, 3}) EXPECT_EQ(run(ps, false), expected) << ps;
}

TEST(CheckpointManager, RestoresIntoAnotherNumberOfShards) {
  const io::TemporaryDirectory directory;
  Program first(2, 5);
  first.train(2);
  CheckpointManager(first.strategy, {.directory = directory.path()}).save(1);
  Program second(3, 2);
  EXPECT_EQ(CheckpointManager(second.strategy, {.directory = directory.path()}).restore_latest(), 1);
  EXPECT_EQ(second.state(), first.state());
}

TEST(CheckpointManager, RestoresNothingFromAnEmptyDirectory) {
  const io::TemporaryDirectory directory;
  Program program(1);
  const auto before = program.state();
  CheckpointManager manager(program.strategy, {.directory = directory.path() / "new"});
  EXPECT_EQ(manager.restore_latest(), std::nullopt);
  EXPECT_EQ(program.state(), before);
}

TEST(CheckpointManager, RejectsUnwritableDirectories) {
  const io::TemporaryDirectory directory;
  const auto file = directory.write("file", "a file");
  Program program(1);
  EXPECT_THROW(CheckpointManager(program.strategy, {.directory = file / "below"}), Error);
}

TEST(CheckpointManager, RestoresTheNewestAndDeletesOldCheckpoints) {
  const io::TemporaryDirectory directory;
  Program program(2);
  CheckpointManager manager(program.strategy, {.directory = directory.path(), .max_to_keep = 2});
  std::vector<std::filesystem::path> paths;
  for (int step = 1; step <= 4; ++step) {
    program.train(1);
    paths.push_back(manager.save(step));
  }
  const auto last = program.state();
  program.train(1);
  EXPECT_EQ(manager.restore_latest(), 4);
  EXPECT_EQ(program.state(), last);
  EXPECT_FALSE(std::filesystem::exists(paths[1]));
  EXPECT_TRUE(std::filesystem::exists(paths[2]));
}

TEST(CheckpointManager, SkipsADamagedCheckpoint) {
  const io::TemporaryDirectory directory;
  Program program(2);
  CheckpointManager manager(program.strategy, {.directory = directory.path()});
  program.train(1);
  manager.save(1);
  const auto first = program.state();
  program.train(1);
  const auto newest = manager.save(2);
  std::filesystem::remove(newest / io::read_manifest(newest).parts.at(1).file);
  EXPECT_EQ(manager.restore_latest(), 1);
  EXPECT_EQ(program.state(), first);
}

/// Locks a directory as another job would.
class LockOfAnotherJob {
 public:
  explicit LockOfAnotherJob(const std::filesystem::path& directory)
      : fd_(::open((directory / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)),
        taken_(::flock(fd_, LOCK_EX | LOCK_NB) == 0) {}
  ~LockOfAnotherJob() { ::close(fd_); }
  LockOfAnotherJob(const LockOfAnotherJob&) = delete;
  LockOfAnotherJob& operator=(const LockOfAnotherJob&) = delete;
  bool taken() const { return taken_; }

 private:
  int fd_;
  bool taken_;
};

TEST(CheckpointManager, RelocksARemovedDirectoryUnlessAnotherJobHoldsTheLock) {
  const io::TemporaryDirectory parent;
  const auto directory = parent.path() / "run";
  Program program(2);
  CheckpointManager manager(program.strategy, {.directory = directory});
  program.train(1);
  manager.save(1);
  std::filesystem::remove_all(directory);
  manager.save(2);
  EXPECT_EQ(manager.latest(), 2);
  EXPECT_FALSE(LockOfAnotherJob(directory).taken());
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  {
    const LockOfAnotherJob other(directory);
    ASSERT_TRUE(other.taken());
    (void)error_of(Code::failed_precondition, [&] { manager.save(3); });
    EXPECT_TRUE(manager.checkpoints().empty());
  }
  manager.save(3);
  EXPECT_EQ(manager.latest(), 3);
  EXPECT_EQ(manager.restore_latest(), 3);
}

/// Calls `on_hold` at the start of a save, and `on_release` once every ps has been asked to write.
class CallbackState final : public strategy::CheckpointedState {
 public:
  explicit CallbackState(
      std::function<void()> on_hold, std::function<void()> on_release = [] {})
      : on_hold_(std::move(on_hold)), on_release_(std::move(on_release)) {}
  void hold() override { on_hold_(); }
  void release() noexcept override { on_release_(); }
  std::string position() const override { return "0"; }
  void check(const std::string&) const override {}
  void restore(const std::string&) override {}

 private:
  std::function<void()> on_hold_;
  std::function<void()> on_release_;
};

TEST(CheckpointManager, KeepsFilesOfAnotherJobThatLockedTheDirectoryAtTheStartOfASave) {
  const io::TemporaryDirectory parent;
  const auto directory = parent.path() / "run", unfinished = directory / "checkpoint-00000007.tmp";
  Program program(2);
  CheckpointManager manager(program.strategy, {.directory = directory});
  std::optional<LockOfAnotherJob> other;
  const auto state = std::make_shared<CallbackState>([&] {
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(unfinished);
    other.emplace(directory);
  });
  program.strategy.implementation().states().add("state", state);
  (void)error_of(Code::failed_precondition, [&] { manager.save(1); });
  ASSERT_TRUE(other && other->taken());
  EXPECT_TRUE(std::filesystem::exists(unfinished));
  EXPECT_TRUE(manager.checkpoints().empty());
}

TEST(CheckpointManager, PublishesNothingIfAnotherJobLockedTheDirectoryDuringASave) {
  const io::TemporaryDirectory parent;
  const auto directory = parent.path() / "run", moved = parent.path() / "moved";
  Program program(2);
  CheckpointManager manager(program.strategy, {.directory = directory});
  strategy::Strategy& strategy = program.strategy.implementation();
  std::optional<LockOfAnotherJob> other;
  const auto replace = [&] {
    // All parts exist, so only the lock can prevent the publication.
    EXPECT_TRUE(strategy.control().wait_until([&] { return strategy.save_progress().settled(); },
                                              transport::deadline_in(std::chrono::seconds(60))));
    std::error_code error;  // the caller is noexcept
    std::filesystem::rename(directory, moved, error);
    EXPECT_FALSE(error) << error.message();
    std::filesystem::copy(moved, directory, std::filesystem::copy_options::recursive, error);
    EXPECT_FALSE(error) << error.message();
    other.emplace(directory);
  };
  const auto state = std::make_shared<CallbackState>([] {}, replace);
  strategy.states().add("state", state);
  (void)error_of(Code::failed_precondition, [&] { manager.save(1); });
  ASSERT_TRUE(other && other->taken());
  EXPECT_TRUE(std::filesystem::exists(directory / "checkpoint-00000001.tmp"));
  EXPECT_TRUE(manager.checkpoints().empty());
}

TEST(CheckpointManager, EachSaveWritesNewFiles) {
  const io::TemporaryDirectory directory;
  Program program(2);
  CheckpointManager manager(program.strategy, {.directory = directory.path()});
  std::set<std::string> files;
  for (int attempt = 0; attempt < 3; ++attempt) {
    for (const io::PartReport& part : io::read_manifest(manager.save(1)).parts) files.insert(part.file);
  }
  EXPECT_EQ(files.size(), 6U) << "two files per save";
}

TEST(CheckpointManager, ListsAllDifferencesAndChangesNothing) {
  const io::TemporaryDirectory directory;
  {
    Program program(2);
    program.train(1);
    CheckpointManager(program.strategy, {.directory = directory.path()}).save(5);
  }
  RankThreads ranks({.ranks = 3});
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  const Variable<float> embedding("model/embedding", Shape{10, 4}, initializers::constant(1),
                                  {optimizers::Adam{.learning_rate = 0.7}});
  const Variable<float> bias("bias", Shape{7}, initializers::constant(2),
                             {optimizers::SGD{.learning_rate = 0.5}});
  const Variable<std::int64_t> seen("seen", Shape{2}, initializers::constant(3), {optimizers::SGD{1}});
  const Variable<float> fresh("fresh", Shape{1});
  CheckpointManager manager(strategy, {.directory = directory.path()});
  try {
    (void)manager.restore_latest();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::failed_precondition);
    const std::string text = error.what();
    EXPECT_THAT(text, NamesAll({"checkpoint-00000005", "variable \"fresh\""}));
    EXPECT_THAT(text, NamesAll({"variable \"model/embedding\"", "(10, 3)", "(10, 4)"}));
    EXPECT_THAT(text, NamesAll({"variable \"bias\"", "float64", "float32", "sgd(learning_rate=0.5)",
                                "adagrad(learning_rate=0.5, initial_accumulator=0.1, epsilon=1e-07)"}));
    EXPECT_THAT(text, testing::Not(HasSubstr("\"seen\"")));
  }
  EXPECT_EQ(embedding.pull(), std::vector<float>(40, 1));
  EXPECT_EQ(bias.pull(), std::vector<float>(7, 2));
  EXPECT_EQ(seen.pull(), std::vector<std::int64_t>(2, 3));
}

TEST(CheckpointManager, CheckMayRejectBeforeAnythingIsChanged) {
  const io::TemporaryDirectory directory;
  Program program(1);
  CheckpointManager manager(program.strategy, {.directory = directory.path()});
  program.train(1);
  manager.save(1, "\"transe\"");
  program.train(1);
  const auto before = program.state();
  EXPECT_THROW((void)manager.restore_latest([](const std::string& state, const std::string& directory_name) {
    EXPECT_EQ(state, "\"transe\"");
    EXPECT_THAT(directory_name, HasSubstr("checkpoint-00000001"));
    throw Error(Code::failed_precondition, "another model");
  }),
               Error);
  EXPECT_EQ(program.state(), before);
}

/// Expects that no spare can replace ps 1, for the given reason.
void expect_no_failover(const strategy::PsContents& contents, const std::string& reason) {
  try {
    (void)contents.failover_of(1);
    ADD_FAILURE() << "a spare could replace the ps";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

TEST(CheckpointManager, FailoverRequestHasTheStateOfTheLastCheckpoint) {
  const io::TemporaryDirectory directory;
  RankThreads ranks({.ranks = 5, .flags = {{"ps", "2"}, {"spares", "1"}}});
  ParameterServerStrategy strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{3}});
  const auto scope = strategy.scope();
  const strategy::PsContents& contents = strategy.implementation().contents();
  const Variable<float> v("v", Shape{9, 2}, {}, {optimizers::Adam{}});
  const Counter first("first");
  const Counter second("second");
  second.add(5);
  expect_no_failover(contents, "no checkpoint");
  CheckpointManager checkpoints(strategy, {.directory = directory.path()});
  const auto path = checkpoints.save(7);
  second.add(1);  // after the save
  protocol::FailoverRequest failover = contents.failover_of(1);
  EXPECT_EQ(failover.source, protocol::FailoverRequest::Source::checkpoint);
  EXPECT_EQ(failover.directory, path.string());
  ASSERT_EQ(failover.shards.size(), 1U);
  EXPECT_EQ(failover.shards[0].name, "v");
  EXPECT_EQ(failover.shards[0].first_row, 3U);
  EXPECT_EQ(failover.shards[0].rows, 3U);
  EXPECT_EQ(failover.counters, (std::vector<std::pair<std::uint32_t, std::uint64_t>>{{0, 5}}));
  EXPECT_EQ(contents.failover_of(0).shards.size(), 2U);
  const Variable<float> newer("newer", Shape{1});  // on ps 1, so ps 0 can still be replaced
  expect_no_failover(contents, "variable \"newer\" is not in the last checkpoint, " + path.string());
  EXPECT_EQ(contents.failover_of(0).shards.size(), 2U) << newer.name();
  (void)checkpoints.save(8);
  EXPECT_EQ(contents.failover_of(1).shards.size(), 2U);
  const UpdateGroup group("steps", Synchronous{});
  expect_no_failover(contents, "update group \"steps\"");
}

}  // namespace
}  // namespace capstan
