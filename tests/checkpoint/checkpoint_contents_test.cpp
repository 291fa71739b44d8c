// checkpoint_contents_test.cpp -- contents of a checkpoint besides variables, and checkpoints under a chosen
// name.
// Tests: src/checkpoint/user_state.cpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "capstan/checkpoint.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/stored_sample.hpp"
#include "io/temporary_directory.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Floats = std::vector<float>;

struct ContentsJob {
  explicit ContentsJob(int ps = 2, std::vector<std::pair<std::string, std::string>> flags = {})
      : ranks(options(ps, std::move(flags))), strategy(ranks.cluster()) {}
  static RankThreadsOptions options(int ps, std::vector<std::pair<std::string, std::string>> flags) {
    const int spares = flags.empty() ? 0 : 1;
    flags.emplace_back("ps", std::to_string(ps));
    return {.ranks = 2 + ps + spares, .flags = std::move(flags)};
  }
  Variable<float> make(const std::string& name, float value,
                       const Optimizer& optimizer = optimizers::SGD{1}) {
    const auto scope = strategy.scope();
    return Variable<float>(name, Shape{3}, initializers::constant(value), {.optimizer = optimizer});
  }

  RankThreads ranks;
  ParameterServerStrategy strategy;
};

nlohmann::json manifest_of(const fs::path& checkpoint) {
  std::ifstream in(checkpoint / "manifest.json");
  return nlohmann::json::parse(in);
}

enum class Phase : std::uint8_t { warm_up = 1, training = 2 };
struct Progress {
  std::int64_t epoch = 0;
  double best = 0;
  Phase phase = Phase::warm_up;
  std::vector<std::string> files = {};
  std::map<std::string, std::optional<float>> metrics = {};
  bool operator==(const Progress&) const = default;
};
struct OtherProgress {
  std::int64_t epoch = 0;
  std::int64_t best = 0;  // same size, other type
  Phase phase = Phase::warm_up;
  std::vector<std::string> files = {};
  std::map<std::string, std::optional<float>> metrics = {};
};

TEST(UserState, RoundTripsAnySerializableValue) {
  const io::TemporaryDirectory directory;
  ContentsJob job;
  CheckpointManager manager(job.strategy, {.directory = directory.path()});
  const Progress progress{
      7, 0.125, Phase::training, {"a", "b \"c\" \\"}, {{"auc", 0.75F}, {"loss", std::nullopt}}};
  const auto path = manager.save(1, progress);
  EXPECT_EQ(manager.restore_latest(), 1);
  EXPECT_EQ(manager.user_state<Progress>(), progress);
  EXPECT_EQ(manifest_of(path)["user_state"]["type"], "(i64, f64, u8, [str], {str: f32?})");
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { (void)manager.user_state<OtherProgress>(); }),
              NamesAll({"(i64, f64, u8, [str], {str: f32?})", "(i64, i64, u8, [str], {str: f32?})"}));
  manager.save(2, 42);
  EXPECT_EQ(manager.restore_latest(), 2);
  EXPECT_EQ(manager.user_state<int>(), 42);
  manager.save(3, std::vector<double>{});
  EXPECT_EQ(manager.restore_latest(), 3);
  EXPECT_THAT(manager.user_state<std::vector<double>>(), IsEmpty());
}

TEST(UserState, PreservesJsonText) {
  const io::TemporaryDirectory directory;
  ContentsJob job;
  CheckpointManager manager(job.strategy, {.directory = directory.path()});
  const std::string text = "{\"epoch\":3}";
  for (const auto& save : {std::function<void()>([&] { manager.save(1, "{\"epoch\":3}"); }),
                           std::function<void()>([&] { manager.save(2, text); })}) {
    save();
    EXPECT_TRUE(manager.restore_latest());
    EXPECT_EQ(manager.user_state(), text);
    EXPECT_THAT(error_of(Code::failed_precondition, [&] { (void)manager.user_state<int>(); }),
                HasSubstr("{\"epoch\":3}"));
  }
}

TEST(Contents, RestoresCountersCreatedBeforeAndAfterTheRestore) {
  const io::TemporaryDirectory directory;
  {
    ContentsJob job(3);
    const auto scope = job.strategy.scope();
    const Counter steps("steps");
    const Counter examples("examples");
    const Counter below("below");
    steps.add(12);
    examples.add(std::int64_t{1} << 40);
    below.add(-5);
    CheckpointManager(job.strategy, {.directory = directory.path()}).save(1);
    steps.add(1);
  }
  for (const int ps : {1, 2}) {
    ContentsJob job(ps);
    const auto scope = job.strategy.scope();
    CheckpointManager manager(job.strategy, {.directory = directory.path()});
    const Counter fresh("fresh");
    const Counter examples("examples");
    examples.add(99);
    fresh.add(3);
    EXPECT_EQ(manager.restore_latest(), 1);
    EXPECT_EQ(examples.value(), std::int64_t{1} << 40);
    EXPECT_EQ(fresh.value(), 3);
    EXPECT_THAT(manager.unmatched(), ElementsAre("counter \"below\"", "counter \"steps\""));
    const Counter steps("steps");
    EXPECT_EQ(steps.value(), 12);
    const Counter below("below");
    EXPECT_EQ(below.value(), -5);
    EXPECT_THAT(manager.unmatched(), IsEmpty());
    EXPECT_THAT(error_of(Code::failed_precondition, [&] { manager.assert_consumed(); }),
                NamesAll({"counter \"fresh\""}));
  }
}

TEST(Contents, ManifestHasVersionSettingsAndOptimizers) {
  const io::TemporaryDirectory directory;
  ContentsJob job;
  const auto v =
      job.make("v", 1, optimizers::Momentum{.learning_rate = 0.1, .momentum = 0.5, .nesterov = true});
  const auto json = manifest_of(CheckpointManager(job.strategy, {.directory = directory.path()}).save(1));
  EXPECT_EQ(json["version"], 1);
  EXPECT_THAT(json["written_by"]["capstan"].get<std::string>(),
              testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_FALSE(json["written_by"]["commit"].get<std::string>().empty());
  EXPECT_EQ(json["settings"]["ps"], 2) << "Capstan's settings if the program passes none";
  const auto& hyperparameters = json["variables"]["v"]["hyperparameters"];
  EXPECT_EQ(hyperparameters,
            nlohmann::json::parse(
                R"({"name": "momentum", "learning_rate": 0.1, "momentum": 0.5, "nesterov": true})"));
  const auto own = manifest_of(
      CheckpointManager(job.strategy, {.directory = directory.path(), .settings = R"({"dim": 3})"}).save(2));
  EXPECT_EQ(own["settings"], nlohmann::json::parse(R"({"dim": 3})"));
}

TEST(Contents, ManifestHasTheParametersOfEveryOptimizer) {
  const io::TemporaryDirectory directory;
  ContentsJob job(1);
  const std::vector<Optimizer> all{optimizers::SGD{},     optimizers::Momentum{}, optimizers::Adagrad{},
                                   optimizers::RMSProp{}, optimizers::Adam{},     optimizers::AdamW{},
                                   optimizers::FTRL{}};
  std::vector<Variable<float>> variables;
  for (const Optimizer& optimizer : all)
    variables.push_back(job.make(std::string(to_string(optimizer.kind)), 0, optimizer));
  const auto json = manifest_of(CheckpointManager(job.strategy, {.directory = directory.path()}).save(1));
  for (const Optimizer& optimizer : all) {
    const auto& hyperparameters =
        json["variables"][std::string(to_string(optimizer.kind))]["hyperparameters"];
    EXPECT_EQ(hyperparameters["name"], to_string(optimizer.kind));
    EXPECT_EQ(hyperparameters["learning_rate"], optimizer.learning_rate);
    for (const auto& [name, value] : hyperparameters.items())
      EXPECT_TRUE(name == "name" || value.is_number() || value.is_boolean()) << name;
  }
  EXPECT_EQ(json["variables"]["ftrl"]["hyperparameters"]["learning_rate_power"], -0.5);
  EXPECT_EQ(json["variables"]["adam"]["hyperparameters"]["epsilon"], 1e-7);
}

TEST(Contents, ManifestHasTheParametersOfSchedules) {
  const io::TemporaryDirectory directory;
  ContentsJob job(1);
  const auto one = job.make("one", 0, optimizers::SGD{schedules::PiecewiseConstantDecay{{10}, {1, 0.5}}});
  const auto json = manifest_of(CheckpointManager(job.strategy, {.directory = directory.path()}).save(1));
  const auto& hyperparameters = json["variables"]["one"]["hyperparameters"];
  EXPECT_EQ(hyperparameters["schedule"], "piecewise_constant_decay");
  EXPECT_EQ(hyperparameters["boundaries"], nlohmann::json::array({10}));
  EXPECT_EQ(hyperparameters["values"], nlohmann::json::array({1, 0.5}));
}

TEST(NamedCheckpoint, IsWrittenAndReadUnderItsName) {
  const io::TemporaryDirectory directory;
  const auto path = directory.path() / "best model";
  ContentsJob job;
  auto v = job.make("v", 1);
  Checkpoint best(job.strategy);
  best.write(path, std::tuple(3, 0.5));
  v.assign(Floats{1, 2, 3});
  best.write(path.string() + "/", std::tuple(4, 0.25));  // replaces the first one
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()), 1)
      << "no other files remain";
  v.assign(Floats{0, 0, 0});
  EXPECT_EQ(best.read(path), 0);
  EXPECT_EQ(v.pull(), (Floats{1, 2, 3}));
  EXPECT_EQ((best.user_state<std::tuple<int, double>>()), std::tuple(4, 0.25));
  EXPECT_EQ(best.restored_from(), path);
  best.assert_consumed();
  ContentsJob other(3);
  Checkpoint reader(other.strategy);
  reader.read(path, {.names = {{"w", "v"}}});
  EXPECT_EQ(other.make("w", 9).pull(), (Floats{1, 2, 3}));
  reader.assert_consumed();
}

TEST(NamedCheckpoint, ReadsCheckpointsOfAManagerAndAfterAnInterruptedReplace) {
  const io::TemporaryDirectory directory;
  ContentsJob job;
  auto v = job.make("v", 4);
  CheckpointManager manager(job.strategy, {.directory = directory.path()});
  const auto path = manager.save(17);
  v.assign(Floats(3, 0));
  EXPECT_EQ(Checkpoint(job.strategy).read(path), 17);
  EXPECT_EQ(v.pull(), Floats(3, 4));
  const auto named = directory.path() / "named";
  Checkpoint(job.strategy).write(named);
  fs::rename(named, named.string() + ".replaced");
  v.assign(Floats(3, 0));
  EXPECT_EQ(Checkpoint(job.strategy).read(named), 0);
  EXPECT_EQ(v.pull(), Floats(3, 4));
}

TEST(NamedCheckpoint, DoesNotOverwriteOtherFiles) {
  const io::TemporaryDirectory directory;
  const auto file = directory.write("notes.txt", "mine");
  ContentsJob job;
  auto v = job.make("v", 1);
  EXPECT_THAT(error_of(Code::already_exists, [&] { Checkpoint(job.strategy).write(file); }),
              HasSubstr("notes.txt"));
  EXPECT_EQ(
      error_of(Code::not_found, [&] { (void)Checkpoint(job.strategy).read(directory.path() / "none"); }),
      "no checkpoint at " + (directory.path() / "none").string());
}

TEST(NamedCheckpoint, IsUsedByFailover) {
  const io::TemporaryDirectory directory;
  ContentsJob job(2, {{"spares", "1"}});
  auto v = job.make("v", 1);
  Checkpoint(job.strategy).write(directory.path() / "named");
  EXPECT_EQ(job.strategy.implementation().contents().failover_of(0).directory,
            (directory.path() / "named").string());
}

TEST(Manager, ListsItsCheckpointsIncludingPermanentOnes) {
  const io::TemporaryDirectory directory;
  ContentsJob job;
  auto v = job.make("v", 1);
  CheckpointManager manager(job.strategy,
                            {.directory = directory.path(), .max_to_keep = 2, .keep_every_n_hours = 1});
  EXPECT_THAT(manager.checkpoints(), IsEmpty());
  for (int step = 1; step <= 4; ++step) {
    const auto path = manager.save(step);
    if (step == 2)
      fs::last_write_time(path / "manifest.json", fs::file_time_type::clock::now() + std::chrono::hours(2));
  }
  EXPECT_THAT(manager.checkpoints(),
              ElementsAre(directory.path() / "checkpoint-00000002", directory.path() / "checkpoint-00000003",
                          directory.path() / "checkpoint-00000004"));
  EXPECT_EQ(manager.latest(), 4);
}

TEST(StoredSample, RestoresVersion1) {
  const io::TemporaryDirectory directory;
  io::unpack_sample("checkpoint_v1", directory.path() / "checkpoint-00000012");
  RankThreads ranks({.ranks = 3});
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  const Variable<double> column("column", Shape{4}, {}, {optimizers::Adagrad{.learning_rate = 0.5}});
  const Variable<bfloat16> brain("brain", Shape{3}, {},
                                 {optimizers::Momentum{.learning_rate = 0.25, .momentum = 0.5}});
  const Counter counter("counter");
  counter.add(2);
  CheckpointManager manager(strategy, {.directory = directory.path()});
  EXPECT_EQ(manager.restore_latest(), 12);
  const Variable<std::int64_t> step("step", Shape{}, {}, {optimizers::SGD{-1}});
  EXPECT_EQ(step.pull(), std::vector<std::int64_t>{42});
  EXPECT_EQ(column.pull()[0], -1.4472135554999614);
  // The saved velocities are -0.25, -0.5 and 1; this step adds half of them.
  brain.push_dense(std::vector<bfloat16>(3, bfloat16(0)));
  brain.flush();
  EXPECT_EQ(brain.pull(),
            (std::vector<bfloat16>{bfloat16(0.75F - 0.125F), bfloat16(0.5F - 0.25F), bfloat16(2.5F)}));
  EXPECT_EQ(counter.value(), 2) << "version 1 has no counters";
  EXPECT_THAT(manager.unmatched(),
              ElementsAre("variable \"flags\"", "variable \"model/rows\"", "the position of \"splits\""));
}

}  // namespace
}  // namespace capstan
