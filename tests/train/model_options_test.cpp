// model_options_test.cpp -- defaults of the programs, and the settings that checkpoints and summaries store.
// Tests: src/train/kge/program_options.cpp
// Tests: src/train/run_options.cpp
// Tests: src/train/optimizer_choice.cpp
// Tests: src/train/set_default.hpp
#include "train/model_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/settings.hpp"
#include "train/kge/program.hpp"

namespace capstan::train {
namespace {

using OptionFlags = std::vector<std::pair<std::string, std::string>>;

Settings settings_of(const OptionFlags& flags) {
  Settings settings;
  for (const auto& [name, value] : flags) settings.set_from_flag(name, value);
  return settings;
}

nlohmann::json stored(const std::string& settings_json) {
  return parse_json(settings_json, "the settings", Code::internal);
}

TEST(ModelOptions, StoreTheDefaultsOfTheProgram) {
  const auto check = [](Program program, const OptionFlags& data, const std::string& optimizer, double rate,
                        std::int64_t batch, int patience = 3) {
    SCOPED_TRACE(to_string(program));
    const ModelOptions options = ModelOptions::from(program, settings_of(data));
    EXPECT_EQ(options.optimizer.learning_rate, rate);
    EXPECT_EQ(options.batch, batch);
    EXPECT_EQ(options.epochs, 100);
    EXPECT_EQ(options.patience, patience);
    EXPECT_EQ(options.valid_fraction, 0.02);
    EXPECT_EQ(options.eval_every, 1);
    const auto settings = stored(options.settings_json);
    EXPECT_EQ(settings.at("optimizer"), optimizer);
    EXPECT_EQ(settings.at("learning-rate"), rate);
    EXPECT_EQ(settings.at("batch"), batch);
    EXPECT_EQ(settings.at("epochs"), 100);
    EXPECT_EQ(settings.at("patience"), patience);
    EXPECT_EQ(settings.at("valid-fraction"), 0.02);
    EXPECT_EQ(settings.at("eval-every"), 1);
  };
  check(Program::lr, {{"data", "a"}}, "adagrad", 0.05, 256);
  check(Program::fm, {{"data", "a"}}, "adagrad", 0.05, 256);
  check(Program::mlp, {{"data", "a"}, {"labels", "b"}}, "adam", 0.001, 64);
  for (const Program program : {Program::deepfm, Program::dlrm, Program::dcn}) {
    check(program, {{"data", "a"}}, "adagrad", 0.03, 256, 6);
  }
}

TEST(ModelOptions, StoreTheShapeOfDeepModels) {
  const auto options = ModelOptions::from(
      Program::dlrm, settings_of({{"data", "a"}, {"factors", "4"}, {"hidden", "3,2"}, {"bottom", "7"}}));
  EXPECT_EQ(options.deep.text(), "--factors=4 --hidden=3,2 --bottom=7");
  EXPECT_EQ(options.format.format, "criteo");
  EXPECT_TRUE(options.format.fields);
  EXPECT_FALSE(options.sparse_l2.weights.has_value());
  EXPECT_EQ(ModelOptions::from(Program::dcn, settings_of({{"data", "a"}, {"cross-layers", "5"}})).deep.text(),
            "--factors=16 --hidden=128,64 --cross-layers=5");
  EXPECT_FALSE(ModelOptions::from(Program::fm, settings_of({{"data", "a"}})).format.fields);
}

TEST(ModelOptions, StoreTheDefaultRateOfTheSelectedOptimizer) {
  const std::vector<std::pair<std::string, double>> rates{
      {"sgd", 0.1},    {"momentum", 0.01}, {"adagrad", 0.05}, {"rmsprop", 0.001},
      {"adam", 0.001}, {"adamw", 0.001},   {"ftrl", 0.05}};
  for (const auto& [name, rate] : rates) {
    SCOPED_TRACE(name);
    const auto options = ModelOptions::from(Program::fm, settings_of({{"data", "a"}, {"optimizer", name}}));
    EXPECT_EQ(to_string(options.optimizer.kind), name);
    EXPECT_EQ(options.optimizer.learning_rate, rate);
    EXPECT_EQ(stored(options.settings_json).at("learning-rate"), rate);
  }
}

TEST(ModelOptions, ImplicitFeedbackHasItsOwnDefaults) {
  const auto ratings = ModelOptions::from(Program::mf, settings_of({{"data", "a"}}));
  const auto pairs = ModelOptions::from(Program::mf, settings_of({{"data", "a"}, {"implicit", "true"}}));
  EXPECT_EQ(ratings.factors, 64);
  EXPECT_EQ(pairs.factors, 64);
  EXPECT_FALSE(ratings.implicit);
  EXPECT_TRUE(pairs.implicit);
  EXPECT_EQ(ratings.l2, 0.09);
  EXPECT_EQ(pairs.l2, 0.01);
  EXPECT_EQ(ratings.optimizer.learning_rate, 0.03);
  EXPECT_EQ(pairs.optimizer.learning_rate, 0.05);
  EXPECT_EQ(ratings.patience, 3);
  EXPECT_EQ(pairs.patience, 10);
  EXPECT_EQ(stored(pairs.settings_json).at("l2"), 0.01);
  EXPECT_EQ(ModelOptions::from(Program::fm, settings_of({{"data", "a"}})).factors, 8);
  EXPECT_EQ(ModelOptions::from(Program::fm, settings_of({{"data", "a"}})).l2, 0);
}

TEST(ModelOptions, DistinguishUnsetPenaltiesFromZero) {
  const auto penalty = [](Program program, const OptionFlags& more) {
    OptionFlags flags{{"data", "a"}};
    flags.insert(flags.end(), more.begin(), more.end());
    return ModelOptions::from(program, settings_of(flags)).sparse_l2;
  };
  EXPECT_FALSE(penalty(Program::fm, {}).weights.has_value());
  EXPECT_FALSE(penalty(Program::fm, {}).factors.has_value());
  EXPECT_EQ(penalty(Program::lr, {{"l2", "0"}}).weights, 0);
  EXPECT_EQ(penalty(Program::fm, {{"factor-l2", "0.5"}}).factors, 0.5);
  const OptionFlags images{{"data", "a"}, {"labels", "b"}, {"l2", "0.25"}};
  EXPECT_EQ(ModelOptions::from(Program::mlp, settings_of(images)).l2, 0.25);
}

TEST(ModelOptions, KeepSettingsThatAreSet) {
  const auto options = ModelOptions::from(
      Program::lr,
      settings_of(
          {{"data", "a"}, {"batch", "7"}, {"epochs", "3"}, {"learning-rate", "0.5"}, {"eval-every", "0"}}));
  EXPECT_EQ(options.batch, 7);
  EXPECT_EQ(options.epochs, 3);
  EXPECT_EQ(options.optimizer.learning_rate, 0.5);
  EXPECT_EQ(options.eval_every, 0);
  const auto settings = stored(options.settings_json);
  EXPECT_EQ(settings.at("batch"), 7);
  EXPECT_EQ(settings.at("learning-rate"), 0.5);
}

TEST(ModelOptions, StopEarlyUnlessTheNumberOfEpochsIsSet) {
  const auto check = [](OptionFlags flags, int epochs, int patience, double valid_fraction) {
    flags.push_back({"data", "a"});
    const auto options = ModelOptions::from(Program::lr, settings_of(flags));
    EXPECT_EQ(options.epochs, epochs);
    EXPECT_EQ(options.patience, patience);
    EXPECT_EQ(options.valid_fraction, valid_fraction);
  };
  check({{"epochs", "7"}}, 7, 0, 0);
  check({{"epochs", "7"}, {"patience", "2"}}, 7, 2, 0.02);
  check({{"patience", "0"}}, 10, 0, 0);
  check({{"eval-every", "0"}}, 10, 0, 0);
  check({{"valid", "b"}}, 100, 3, 0);
  check({{"valid-fraction", "0.2"}}, 100, 3, 0.2);
}

TEST(ModelOptions, RejectSettingsThatExcludeEachOther) {
  const auto error_of = [](OptionFlags flags) -> std::string {
    flags.push_back({"data", "a"});
    try {
      ModelOptions::from(Program::lr, settings_of(flags));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of({{"valid", "b"}, {"valid-fraction", "0.1"}}),
            "--valid-fraction divides --data: expected no --valid with it");
  EXPECT_EQ(error_of({{"patience", "2"}, {"eval-every", "0"}}),
            "--patience counts evaluations: found --eval-every 0, expected at least 1");
}

TEST(KgeOptions, StoreTheDefaultsOfTheModel) {
  for (const char* model : {"transe", "distmult", "complex", "rescal", "rotate"}) {
    SCOPED_TRACE(model);
    const auto options = kge::ProgramOptions::from(settings_of({{"model", model}}));
    const kge::ModelDefaults& defaults = kge::defaults_of(kge::parse_model(model));
    EXPECT_EQ(options.dim, defaults.dim);
    EXPECT_EQ(options.optimizer.learning_rate, defaults.learning_rate);
    EXPECT_EQ(options.n3, defaults.n3);
    const auto settings = stored(options.settings_json);
    EXPECT_EQ(settings.at("dim"), defaults.dim);
    EXPECT_EQ(settings.at("negatives"), defaults.negatives);
    EXPECT_EQ(settings.at("batch"), defaults.batch);
    EXPECT_EQ(settings.at("epochs"), defaults.epochs);
    EXPECT_EQ(settings.at("learning-rate"), defaults.learning_rate);
    EXPECT_EQ(settings.at("n3").get<float>(), defaults.n3);
    EXPECT_EQ(settings.at("margin").get<float>(), defaults.margin);
    EXPECT_EQ(settings.at("eval-every"), 0) << "only at the end";
    EXPECT_EQ(settings.at("patience"), 0);
  }
}

TEST(KgeOptions, EvaluateAfterEachEpochWithPatience) {
  EXPECT_EQ(kge::ProgramOptions::from(settings_of({{"patience", "3"}})).eval_every, 1);
  EXPECT_EQ(kge::ProgramOptions::from(settings_of({{"patience", "3"}, {"eval-every", "2"}})).eval_every, 2);
}

TEST(KgeOptions, SearchByDefaultIfThereIsAValidationFile) {
  const std::filesystem::path data = std::filesystem::path(testing::TempDir()) / "kge_options_auto";
  std::filesystem::create_directories(data);
  std::filesystem::remove(data / "valid.txt");
  const auto options = [&](OptionFlags flags) {
    flags.push_back({"data", data.string()});
    return kge::ProgramOptions::from(settings_of(flags));
  };
  EXPECT_FALSE(options({}).auto_search.enabled);
  std::ofstream(data / "valid.txt").close();
  EXPECT_FALSE(options({}).auto_search.enabled) << "an empty file";
  std::ofstream(data / "valid.txt") << "a\tr\tb\n";
  const kge::ProgramOptions found = options({});
  EXPECT_TRUE(found.auto_search.enabled);
  EXPECT_EQ(found.auto_search.searched.size(), 2U);
  EXPECT_GT(found.patience, 0);
  EXPECT_GT(found.eval_every, 0);
  EXPECT_GT(found.epochs, found.auto_search.trial_epochs);
  EXPECT_EQ(stored(found.settings_json).at("auto"), true);
  const kge::ProgramOptions fixed = options({{"n3", "0.1"}, {"auto-time", "30s"}});
  ASSERT_EQ(fixed.auto_search.searched.size(), 1U);
  EXPECT_EQ(fixed.auto_search.searched[0].name, "learning-rate");
  EXPECT_EQ(fixed.auto_search.time, std::chrono::seconds(30));
  EXPECT_EQ(options({{"model", "distmult"}}).auto_search.searched.size(), 3U);
  for (const kge::SearchedSetting& one :
       options({{"model", "distmult"}, {"negatives", "64"}}).auto_search.searched)
    EXPECT_NE(one.name, "negatives") << "it was given";
  for (const OptionFlags& flags : {OptionFlags{{"epochs", "3"}}, OptionFlags{{"patience", "0"}},
                                   OptionFlags{{"eval-every", "0"}}, OptionFlags{{"auto", "false"}}}) {
    SCOPED_TRACE(flags[0].first);
    EXPECT_FALSE(options(flags).auto_search.enabled);
    EXPECT_EQ(options(flags).patience, 0);
  }
  EXPECT_THROW(options({{"auto", "true"}, {"epochs", "3"}}), Error);
  EXPECT_THROW(options({{"auto", "true"}, {"patience", "0"}}), Error);
  EXPECT_THROW(options({{"auto", "true"}, {"eval-every", "0"}}), Error);
}

TEST(KgeOptions, RejectWhatTheModelLacks) {
  const auto message = [](const OptionFlags& values) -> std::string {
    try {
      kge::ProgramOptions::from(settings_of(values));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "";
  };
  using testing::AllOf, testing::HasSubstr;
  for (const char* model : {"rescal", "rotate"}) {
    EXPECT_THAT(message({{"model", model}, {"device", "cuda"}}),
                AllOf(HasSubstr("--device cuda"), HasSubstr(model), HasSubstr("complex")));
  }
  EXPECT_EQ(message({{"model", "transe"}, {"device", "cuda"}}), "");
  EXPECT_THAT(message({{"model", "rotate"}, {"dim", "7"}}), AllOf(HasSubstr("--dim 7"), HasSubstr("rotate")));
  EXPECT_EQ(message({{"model", "rescal"}, {"dim", "7"}, {"n3", "0.2"}}), "");
  EXPECT_THAT(message({{"model", "rotate"}, {"n3", "0.2"}}), AllOf(HasSubstr("--n3"), HasSubstr("rotate")));
  EXPECT_THAT(message({{"model", "transe"}, {"margin", "3"}}),
              AllOf(HasSubstr("--margin"), HasSubstr("transe")));
  EXPECT_EQ(message({{"model", "rotate"}, {"margin", "0"}}), "");
}

TEST(KgeOptions, KeepSettingsThatAreSet) {
  const auto options = kge::ProgramOptions::from(settings_of({{"dim", "64"}, {"n3", "0"}}));
  EXPECT_EQ(options.dim, 64);
  EXPECT_EQ(options.n3, 0);
  const auto settings = stored(options.settings_json);
  EXPECT_EQ(settings.at("dim"), 64);
  EXPECT_EQ(settings.at("n3"), 0);
}

}  // namespace
}  // namespace capstan::train
