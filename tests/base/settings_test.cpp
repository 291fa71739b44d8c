// settings_test.cpp -- values and precedence of settings, and errors that name the source and the allowed
// values.
// Tests: src/base/settings_print.cpp
// Tests: src/base/unknown_setting.cpp
// Tests: src/base/settings_sources.cpp
// Tests: src/base/settings_table.cpp
// Tests: src/base/settings_value.cpp
#include "base/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "support/names_all.hpp"

namespace capstan {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// Returns the message of the Error that `action` throws, which must have this code.
template <class Action>
std::string error_message(Action action, Code code = Code::invalid_argument) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

std::string in_quotes(const std::string& value) { return "\"" + value + "\""; }

std::string flag_error(const std::string& name, const std::string& text) {
  Settings settings;
  return error_message([&] { settings.set_from_flag(name, text); });
}

Settings with_flag(const std::string& name, const std::string& text) {
  Settings settings;
  settings.set_from_flag(name, text);
  return settings;
}

void load_environment(Settings& settings, const std::vector<std::string>& variables) {
  std::vector<const char*> list;
  for (const auto& variable : variables) list.push_back(variable.c_str());
  list.push_back(nullptr);
  settings.load_environment(list.data());
}

class SettingsFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) const {
    std::ofstream(path_) << text;
    return path_;
  }
  std::string file_error(const std::string& text) const {
    Settings settings;
    return error_message([&] { settings.load_file(write(text)); });
  }
  std::string at(int line) const { return path_.string() + ":" + std::to_string(line) + ": "; }
  ~SettingsFile() override { std::filesystem::remove(path_); }

 private:
  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".settings_test.toml");
};

TEST(SettingsTable, EveryRowIsCompleteAndUnique) {
  const Settings settings;  // aborts if a default cannot be parsed
  std::set<std::string> names;
  ASSERT_FALSE(Settings::table().empty());
  for (const Setting& setting : Settings::table()) {
    EXPECT_TRUE(names.emplace(setting.name).second) << setting.name;
    EXPECT_FALSE(setting.help.empty()) << setting.name;
    EXPECT_FALSE(setting.group.empty()) << setting.name;
    EXPECT_EQ(setting.kind == SettingKind::choice, !setting.choices.empty()) << setting.name;
    EXPECT_FALSE(settings.given(setting.name)) << setting.name;
    EXPECT_EQ(setting.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string_view::npos);
    // A default without an explanation must be a value that a user may give.
    if (setting.initial_means.empty()) {
      EXPECT_NO_THROW(with_flag(std::string(setting.name), std::string(setting.initial))) << setting.name;
    }
  }
}

TEST(SettingsTable, DefaultsMatchTheDocumentation) {
  const Settings settings;
  EXPECT_EQ(settings.integer("ps"), 0);
  EXPECT_EQ(settings.bytes("push-ring-bytes"), 1u << 20);
  EXPECT_EQ(settings.bytes("heap-slab-bytes"), 64u << 20);
  EXPECT_EQ(settings.duration("start-timeout"), 60'000ms);
  EXPECT_EQ(settings.integer("queue-limit"), 256 * 1024);
  EXPECT_EQ(settings.text("window"), "auto");
  EXPECT_EQ(settings.text("log-level"), "");
  EXPECT_EQ(settings.integer("dim"), 0) << "0 selects the model's default";
  EXPECT_FALSE(settings.flag("evaluator"));
}

TEST(SettingsValues, BytesAcceptBinaryAndDecimalUnits) {
  const std::vector<std::pair<std::string, std::uint64_t>> good{
      {"65536", 65536},   {"65536B", 65536},      {"64k", 65536},      {"64KiB", 65536},  {"8MiB", 8u << 20},
      {"8M", 8u << 20},   {"8 MiB", 8u << 20},    {"1MB", 1'000'000},  {"1.5M", 1572864}, {"100kB", 100'000},
      {"2g", 2ull << 30}, {"1GB", 1'000'000'000}, {"1TiB", 1ull << 40}};
  for (const auto& [text, value] : good) {
    EXPECT_EQ(with_flag("push-ring-bytes", text).bytes("push-ring-bytes"), value) << text;
  }
  for (const std::string text :
       {"", "MiB", "8XB", "8MiBs", "8  MiB", "-8MiB", "64k64k", "65536.5", "1e9", "0x10000", "+65536",
        " 65536", "1", "0", "2TiB", "99999999999999999999", "inf", "nan"}) {
    EXPECT_THAT(flag_error("push-ring-bytes", text),
                NamesAll({"--push-ring-bytes", in_quotes(text), "8MiB", "64KiB", "1TiB"}));
  }
}

TEST(SettingsValues, DurationsNeedAUnit) {
  const std::vector<std::pair<std::string, std::chrono::milliseconds>> good{
      {"500ms", 500ms},    {"30s", 30'000ms}, {"5min", 300'000ms},
      {"1h", 3'600'000ms}, {"0.1s", 100ms},   {"1ms", 1ms}};
  for (const auto& [text, value] : good) {
    EXPECT_EQ(with_flag("wait-timeout", text).duration("wait-timeout"), value) << text;
  }
  for (const std::string text : {"", "30", "s", "30sec", "-1s", "0s", "0.0001s", "1m", "forever"}) {
    EXPECT_THAT(flag_error("wait-timeout", text), NamesAll({"--wait-timeout", in_quotes(text), "30s"}));
  }
}

TEST(SettingsValues, DurationsAreClampedToTheRangeOfTheClock) {
  using Clock = std::chrono::steady_clock;
  const auto left = std::chrono::floor<std::chrono::milliseconds>(Clock::time_point::max() - Clock::now());
  for (const std::string text : {"3000000h", "2000000000h"})
    EXPECT_LT(with_flag("wait-timeout", text).duration("wait-timeout"), left) << text;
}

TEST(SettingsValues, SizesMustBePositive) {
  for (const std::string name :
       {"dim", "negatives", "batch", "epochs", "slice-batches", "max-to-keep", "queue-limit"}) {
    for (const std::string text : {"0", "-1", "-9223372036854775808"}) {
      EXPECT_THAT(flag_error(name, text), NamesAll({"--" + name, "1", in_quotes(text)}));
    }
  }
  EXPECT_THAT(flag_error("ps", "-1"), NamesAll({"--ps", "0", "\"-1\""}));
  EXPECT_THAT(flag_error("learning-rate", "0"), NamesAll({"--learning-rate", "\"0\""}));
}

TEST(SettingsValues, IntegersRejectOtherText) {
  EXPECT_EQ(with_flag("dim", "64").integer("dim"), 64);
  EXPECT_EQ(with_flag("seed", "9007199254740992").integer("seed"), 9007199254740992);
  for (const std::string text :
       {"", " 64", "64 ", "6 4", "64.0", "0x40", "1e3", "sixty", "9223372036854775808"}) {
    EXPECT_THAT(flag_error("dim", text), NamesAll({"--dim", "integer", in_quotes(text)}));
  }
  EXPECT_THAT(flag_error("dim", "65537"), NamesAll({"--dim", "65536", "\"65537\""}));
}

TEST(SettingsValues, RealsAreFinite) {
  EXPECT_DOUBLE_EQ(with_flag("learning-rate", "1e-3").real("learning-rate"), 0.001);
  EXPECT_DOUBLE_EQ(with_flag("n3", "0").real("n3"), 0);
  EXPECT_TRUE(with_flag("n3", "0").given("n3"));
  for (const std::string text : {"", "nan", "inf", "0,1", "0.1x", "-0.1"}) {
    EXPECT_THAT(flag_error("learning-rate", text), NamesAll({"--learning-rate", "number", in_quotes(text)}));
  }
}

TEST(SettingsValues, FlagsAndChoicesAcceptOnlyListedWords) {
  for (const std::string yes : {"true", "on", "yes", "1"})
    EXPECT_TRUE(with_flag("resume", yes).flag("resume"));
  for (const std::string no : {"false", "off", "no", "0"})
    EXPECT_FALSE(with_flag("resume", no).flag("resume"));
  EXPECT_THAT(flag_error("resume", "maybe"), NamesAll({"--resume", "true", "false", "\"maybe\""}));
  EXPECT_EQ(with_flag("model", "transe").text("model"), "transe");
  for (const std::string text : {"", "TransE", "tucker", "transe|complex"}) {
    EXPECT_THAT(flag_error("model", text),
                NamesAll({"--model", "transe", "distmult", "complex", in_quotes(text)}));
  }
}

TEST(SettingsNames, UnknownFlagErrorSuggestsTheNearestName) {
  EXPECT_THAT(flag_error("dims", "3"), NamesAll({"--dims", "--dim"}));
  EXPECT_THAT(flag_error("learning_rate", "3"), NamesAll({"--learning_rate", "--learning-rate"}));
  EXPECT_THAT(flag_error("quokka", "3"),
              AllOf(NamesAll({"--quokka", "capstan settings"}), Not(ContainsRegex("--quokka.*--"))))
      << "no other flag is similar";
}

TEST(SettingsNames, NearestNameMustBeSimilar) {
  const std::vector<std::string> known{"train", "settings", "ps"};
  const std::vector<std::pair<std::string, std::string>> table{
      {"trian", "train"},     {"Train", "train"}, {"setting", "settings"},
      {"stings", "settings"}, {"serve", ""},      {"", ""}};
  for (const auto& [given, nearest] : table) EXPECT_EQ(nearest_name(given, known), nearest) << given;
}

TEST(SettingsEnvironment, ReadsCapstanVariablesAndIgnoresOthers) {
  Settings settings;
  load_environment(
      settings, {"PATH=/bin", "UCX_TLS=tcp", "CAPSTAN", "CAPSTAN_CONFIG=/nowhere", "CAPSTAN_TESTS_RANKS=4",
                 "CAPSTAN_AGENT=/nowhere", "CAPSTAN_AGENT_LINK=0.1.0:1", "CAPSTAN_JOB_TOKEN=0",
                 "CAPSTAN_PUSH_RING_BYTES=1MiB", "CAPSTAN_CHECKPOINT_DIR=a=b", "CAPSTAN_TEST_LABELS=t10k"});
  EXPECT_EQ(settings.bytes("push-ring-bytes"), 1u << 20);
  EXPECT_EQ(settings.text("checkpoint-dir"), "a=b");
  EXPECT_EQ(settings.text("test-labels"), "t10k");
  EXPECT_EQ(settings.origin("push-ring-bytes").brief(), "environment");
  EXPECT_FALSE(settings.given("dim"));
}

TEST(SettingsEnvironment, RejectsUnknownAndMalformedVariablesByName) {
  Settings settings;
  EXPECT_THAT(error_message([&] { load_environment(settings, {"CAPSTAN_PUSH_RING_BYTE=1"}); }),
              NamesAll({"CAPSTAN_PUSH_RING_BYTE", "CAPSTAN_PUSH_RING_BYTES"}));
  EXPECT_THAT(error_message([&] { load_environment(settings, {"CAPSTAN_=1"}); }),
              NamesAll({"CAPSTAN_", "capstan settings"}));
  EXPECT_THAT(error_message([&] { load_environment(settings, {"CAPSTAN_dim=1"}); }),
              NamesAll({"CAPSTAN_dim", "CAPSTAN_DIM"}));
  EXPECT_THAT(error_message([&] { load_environment(settings, {"CAPSTAN_DIM=many"}); }),
              NamesAll({"CAPSTAN_DIM", "integer", "1", "\"many\""}));
}

TEST_F(SettingsFile, AcceptsTopLevelKeysAndGroups) {
  Settings settings;
  settings.load_file(
      write("wait-timeout = \"5s\"\n"
            "dim = 64\n"
            "[runtime]\n"
            "evaluator = true\n"
            "heap-slab-bytes = 1048576\n"
            "push-ring-bytes = \"1MiB\"\n"
            "[kge]\n"
            "learning-rate = 0.25\n"
            "n3 = 1\n"
            "model = \"distmult\"\n"));
  EXPECT_EQ(settings.duration("wait-timeout"), 5'000ms);
  EXPECT_EQ(settings.integer("dim"), 64);
  EXPECT_TRUE(settings.flag("evaluator"));
  EXPECT_EQ(settings.bytes("heap-slab-bytes"), 1u << 20);
  EXPECT_EQ(settings.bytes("push-ring-bytes"), 1u << 20);
  EXPECT_DOUBLE_EQ(settings.real("learning-rate"), 0.25);
  EXPECT_DOUBLE_EQ(settings.real("n3"), 1);
  EXPECT_EQ(settings.text("model"), "distmult");
  EXPECT_EQ(settings.origin("evaluator").brief() + ": ", at(4));
}

TEST_F(SettingsFile, AcceptsTheTableOfAProgram) {
  for (const std::string table :
       {"train", "kge", "lr", "fm", "mf", "mlp", "deepfm", "dlrm", "dcn", "word2vec"}) {
    Settings settings;
    settings.load_file(write("[" + table + "]\nepochs = 3\n"));
    EXPECT_EQ(settings.integer("epochs"), 3) << table;
  }
  EXPECT_THAT(file_error("[lr]\ndim = 3\n"), NamesAll({at(2), "dim", "[lr]", "[embeddings]"}));
  EXPECT_THAT(file_error("[fm]\nhidden = \"3\"\n"), NamesAll({at(2), "hidden", "[fm]", "[mlp]"}));
}

TEST_F(SettingsFile, RejectsInvalidKeysWithFileAndLine) {
  EXPECT_THAT(file_error("seed = 1\ndims = 3\n"), NamesAll({at(2), "\"dims\"", "dim"}));
  EXPECT_THAT(file_error("[kge]\n\nzebra = 3\n"), NamesAll({at(3), "\"zebra\"", "capstan settings"}));
  EXPECT_THAT(file_error("[kgee]\ndim = 3\n"), HasSubstr("\"kgee\""));
  EXPECT_THAT(file_error("\n[runtime]\ndim = 3\n"), NamesAll({at(3), "dim", "[runtime]", "[embeddings]"}));
  EXPECT_THAT(file_error("dim = 3\n[kge]\ndim = 4\n"), NamesAll({at(3), "dim", "1"}));
  EXPECT_THAT(file_error("dim = 0\n"), NamesAll({at(1), "dim", "integer", "1", "\"0\""}));
  EXPECT_THAT(file_error("window = \"direct\"\n"),
              NamesAll({at(1), "window", "auto", "mapped", "rma", "\"direct\""}));
  EXPECT_THAT(file_error("wait-timeout = \"5\"\n"), NamesAll({at(1), "wait-timeout", "30s", "\"5\""}));
}

TEST_F(SettingsFile, RejectsTheWrongType) {
  // The setting, its type, and the type that the file has.
  const std::vector<std::pair<std::string, std::vector<std::string>>> table{
      {"dim = \"64\"", {"dim", "integer", "string"}},
      {"dim = 64.0", {"dim", "integer", "floating-point"}},
      {"dim = [64]", {"dim", "integer", "array"}},
      {"[dim]\nx = 1", {"dim", "integer", "table"}},
      {"n3 = \"0.1\"", {"n3", "number", "string"}},
      {"learning-rate = inf", {"learning-rate", "number"}},
      {"wait-timeout = 30", {"wait-timeout", "string", "\"30s\"", "integer"}},
      {"push-ring-bytes = 65536.0", {"push-ring-bytes", "integer", "\"8MiB\"", "floating-point"}},
      {"resume = \"true\"", {"resume", "true", "false", "string"}},
      {"resume = 1", {"resume", "true", "false", "integer"}},
      {"supervise = true", {"supervise", "string", "boolean"}},
      {"data = 2020-01-01", {"data", "string", "date"}}};
  for (const auto& [text, parameters] : table)
    EXPECT_THAT(file_error(text + "\n"), AllOf(HasSubstr(at(1)), NamesAll(parameters)));
}

TEST_F(SettingsFile, RejectsInvalidToml) {
  EXPECT_THAT(file_error("seed = 1\ndim = \n"), NamesAll({at(2), "TOML"}));
  EXPECT_THAT(file_error("dim 64\n"), NamesAll({at(1), "TOML"}));
  EXPECT_THAT(file_error("dim = 64\ndim = 65\n"), NamesAll({at(2), "TOML"}));
}

TEST(SettingsMissingFile, ErrorNamesTheSourceOfThePath) {
  Settings settings;
  EXPECT_THAT(error_message([&] { settings.load_file("/nowhere/run.toml", "--config"); }, Code::not_found),
              NamesAll({"--config", "/nowhere/run.toml"}));
  EXPECT_THAT(error_message([&] { settings.load_file(testing::TempDir()); }),
              NamesAll({testing::TempDir(), "directory", "TOML"}));
}

TEST_F(SettingsFile, PrecedenceDoesNotDependOnTheOrderOfLoading) {
  const auto path = write("dim = 1\nbatch = 1\nepochs = 1\n");
  const auto flags = [](Settings& s) { s.set_from_flag("dim", "3"); };
  const auto environment = [](Settings& s) { load_environment(s, {"CAPSTAN_DIM=2", "CAPSTAN_BATCH=2"}); };
  const auto file = [&](Settings& s) { s.load_file(path); };
  const std::vector<std::function<void(Settings&)>> sources{flags, environment, file};
  for (std::vector<int> order{0, 1, 2};;) {
    Settings settings;
    for (const int i : order) sources[static_cast<std::size_t>(i)](settings);
    EXPECT_EQ(settings.integer("dim"), 3);
    EXPECT_EQ(settings.integer("batch"), 2);
    EXPECT_EQ(settings.integer("epochs"), 1);
    EXPECT_EQ(settings.integer("seed"), 1);
    EXPECT_EQ(settings.origin("dim").brief(), "flag");
    EXPECT_EQ(settings.origin("batch").brief(), "environment");
    EXPECT_EQ(settings.origin("epochs").brief() + ": ", at(3));
    EXPECT_EQ(settings.origin("seed").brief(), "default");
    if (!std::next_permutation(order.begin(), order.end())) break;
  }
}

TEST_F(SettingsFile, ChecksOverriddenValues) {
  Settings settings;
  settings.set_from_flag("dim", "3");
  EXPECT_THAT(error_message([&] { load_environment(settings, {"CAPSTAN_DIM=0"}); }),
              HasSubstr("CAPSTAN_DIM"));
  EXPECT_EQ(settings.integer("dim"), 3);
}

TEST(SettingsFlags, LastOfRepeatedFlagsWins) {
  Settings settings;
  settings.set_from_flag("dim", "3");
  settings.set_from_flag("dim", "4");
  EXPECT_EQ(settings.integer("dim"), 4);
}

TEST(SettingsCopies, AreIndependent) {
  Settings one = with_flag("dim", "3");
  Settings two = one;
  two.set_from_flag("dim", "4");
  EXPECT_EQ(one.integer("dim"), 3);
  EXPECT_EQ(two.integer("dim"), 4);
}

TEST(SettingsPrint, ShowsEverySettingWithItsOrigin) {
  std::ostringstream out;
  with_flag("dim", "64").print(out);
  for (const Setting& setting : Settings::table()) {
    EXPECT_THAT(out.str(), AllOf(HasSubstr(std::string(setting.name)), HasSubstr(setting.variable()),
                                 HasSubstr(std::string(setting.help))));
  }
  EXPECT_THAT(out.str(), HasSubstr("dim = 64 floats  (from: flag)"));
  EXPECT_THAT(out.str(), HasSubstr("push-ring-bytes = 1MiB  (from: default)"));
}

TEST(SettingsPrint, MarkdownDoesNotDependOnTheValues) {
  std::ostringstream by_default, changed;
  Settings().print_markdown(by_default);
  with_flag("dim", "64").print_markdown(changed);
  EXPECT_EQ(by_default.str(), changed.str());
  EXPECT_THAT(
      by_default.str(),
      HasSubstr("| `dim` | word2vec 100; distmult and rotate 512; rescal 128; others 256 | floats |"));
}

TEST(SettingsPrint, JsonHasTypedValues) {
  Settings settings = with_flag("dim", "64");
  settings.set_from_flag("learning-rate", "0.5");
  settings.set_from_flag("resume", "true");
  settings.set_from_flag("checkpoint-dir", "a \"b\"\xff");
  const std::string json = settings.to_json();
  EXPECT_THAT(json,
              AllOf(HasSubstr("\"dim\":64"), HasSubstr("\"learning-rate\":0.5"), HasSubstr("\"resume\":true"),
                    HasSubstr("\"push-ring-bytes\":1048576"), HasSubstr("\"wait-timeout\":\"60s\""),
                    HasSubstr("\"checkpoint-dir\":\"a \\\"b\\\"")));
}

TEST(SettingsDeathTest, GetterAbortsForAnUnknownNameOrAnotherKind) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Settings settings;
  EXPECT_DEATH(static_cast<void>(settings.integer("quokka")), "assertion failed");
  EXPECT_DEATH(static_cast<void>(settings.integer("model")), "assertion failed");
}

}  // namespace
}  // namespace capstan
