// command_line_test.cpp -- parsing of the command line.
#include "launch/command_line.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "capstan/error.hpp"

namespace capstan::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;

CommandLine parse(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), "capstan");
  std::vector<const char*> argv, env;
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  for (const auto& variable : environment) env.push_back(variable.c_str());
  const int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  env.push_back(nullptr);
  return parse_command_line(argc, argv.data(), env.data());
}

std::string refusal(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment = {}) {
  try {
    parse(arguments, environment);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(CommandLineParser, VerboseSetsTheLogLevel) {
  EXPECT_EQ(parse({"train", "kge", "-v"}).settings.text("log-level"), "debug");
  EXPECT_FALSE(parse({"train", "kge"}).settings.given("log-level"));
}

TEST(CommandLineParser, FlagsBecomeSettings) {
  const CommandLine line =
      parse({"train", "kge", "--dim", "64", "--learning-rate=0.5", "--resume", "--model", "transe"});
  EXPECT_EQ(line.action, Action::train);
  EXPECT_EQ(line.program, "kge");
  EXPECT_EQ(line.settings.integer("dim"), 64);
  EXPECT_DOUBLE_EQ(line.settings.real("learning-rate"), 0.5);
  EXPECT_TRUE(line.settings.flag("resume"));
  EXPECT_EQ(line.settings.text("model"), "transe");
  EXPECT_EQ(line.settings.origin("dim").brief(), "flag");
  EXPECT_FALSE(line.settings.given("batch"));
}

bool accepts(std::string_view program, const Setting& setting) {
  const auto groups = groups_of(program);
  return setting.group == "runtime" || std::find(groups.begin(), groups.end(), setting.group) != groups.end();
}

/// The setting as an option with a valid value.
std::string option_of(const Setting& setting) {
  const std::string name = "--" + std::string(setting.name);
  if (setting.kind == SettingKind::flag) return name;
  if (!setting.choices.empty()) {
    return fmt::format("{}={}", name, setting.choices.substr(0, setting.choices.find('|')));
  }
  return fmt::format("{}={}", name, setting.initial_means.empty() ? setting.initial : "1");
}

TEST(CommandLineParser, EverySettingIsAnOptionOfItsPrograms) {
  std::set<std::string_view> taken;
  for (const std::string program : {"kge", "lr", "fm", "mf", "mlp", "deepfm", "dlrm", "dcn", "word2vec"}) {
    std::vector<std::string> words{"train", program};
    std::vector<std::string_view> names;
    for (const Setting& setting : Settings::table()) {
      if (accepts(program, setting)) {
        words.push_back(option_of(setting));
        names.push_back(setting.name);
      } else {
        EXPECT_THAT(refusal({"train", program, option_of(setting)}),
                    HasSubstr(fmt::format("--{}: there is no such option", setting.name)));
      }
    }
    const Settings settings = parse(words).settings;
    for (const auto name : names) EXPECT_EQ(settings.origin(name).brief(), "flag") << program << " " << name;
    taken.insert(names.begin(), names.end());
  }
  std::vector<std::string> all{"settings"};
  for (const Setting& setting : Settings::table()) {
    EXPECT_TRUE(taken.contains(setting.name)) << setting.name;
    all.push_back(option_of(setting));
  }
  const Settings settings = parse(all).settings;
  for (const Setting& setting : Settings::table()) {
    EXPECT_EQ(settings.origin(setting.name).brief(), "flag") << setting.name;
  }
}

TEST(CommandLineParser, EachProgramHasAnAction) {
  for (const char* program : {"lr", "fm", "mf", "mlp", "deepfm", "dlrm", "dcn", "word2vec"}) {
    EXPECT_EQ(parse({"train", program}).action, Action::train);
    EXPECT_EQ(parse({"train", program}).program, program);
  }
}

TEST(CommandLineParser, AcceptsSeveralFilesPerOption) {
  const Settings settings =
      parse({"train", "lr", "--data", "a", "b", "--test", "c", "--batch", "7", "--data=d"}).settings;
  EXPECT_EQ(settings.text("data"), "a,b,d");
  EXPECT_EQ(settings.text("test"), "c");
  EXPECT_EQ(settings.integer("batch"), 7);
  EXPECT_EQ(parse({"train", "kge", "--data", "a", "--data", "b"}).settings.text("data"), "b");
  EXPECT_THAT(refusal({"train", "lr", "--data", "--test", "c"}), HasSubstr("--data"));
  EXPECT_FALSE(parse({"train", "lr", "--no-bias"}).settings.flag("bias"));
  EXPECT_TRUE(parse({"train", "lr"}).settings.flag("bias"));
}

TEST(CommandLineParser, FlagCanBeNegated) {
  const std::vector<std::string> environment{"CAPSTAN_RESUME=true"};
  EXPECT_TRUE(parse({"train", "kge"}, environment).settings.flag("resume"));
  EXPECT_FALSE(parse({"train", "kge", "--no-resume"}, environment).settings.flag("resume"));
  EXPECT_FALSE(parse({"train", "kge", "--resume=false"}, environment).settings.flag("resume"));
  EXPECT_TRUE(parse({"train", "kge", "--no-resume", "--resume"}).settings.flag("resume"));
  EXPECT_THAT(refusal({"train", "kge", "--resume=perhaps"}), HasSubstr("--resume"));
}

TEST(CommandLineParser, LastOccurrenceOfAnOptionWins) {
  EXPECT_EQ(parse({"train", "kge", "--dim", "1", "--dim", "2"}).settings.integer("dim"), 2);
}

TEST(CommandLineParser, ErrorsNameTheOption) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"train", "kge", "--dims", "3"}, "--dims: there is no such option; did you mean --dim?"},
      {{"train", "kge", "--dims=3"}, "--dims: there is no such option; did you mean --dim?"},
      {{"train", "kge", "--Dim", "3"}, "did you mean --dim?"},
      {{"train", "kge", "--zebra-crossing"}, "--zebra-crossing: there is no such option"},
      {{"train", "kge", "-x"}, "-x: there is no such option"},
      {{"train", "kge", "--confg", "x"}, "did you mean --config?"},
      {{"train", "kge", "--dim"}, "--dim"},
      {{"train", "kge", "--dim", "0"}, "flag --dim: dim must be an integer of at least 1"},
      {{"train", "kge", "--dim", "-3"}, "not \"-3\""},
      {{"train", "kge", "--dim="}, "--dim"},
      {{"train", "kge", "--batch", "--dim", "3"}, "--batch: the value is missing before --dim"},
      {{"train", "kge", "extra"}, "\"extra\": there is no such argument"},
      {{"train", "lr", "--n3", "1"}, "--n3: there is no such option"},
      {{"train", "kga"}, "\"kga\": there is no such command; did you mean kge?"},
      {{"trian", "kge"}, "\"trian\": there is no such command; did you mean train?"},
      {{"--versions"}, "did you mean --version?"},
      {{"--dim", "3"}, "--dim: there is no such option"},
      {{"train"}, "capstan train kge"},
      {{}, "a command is missing"},
      {{"settings", "--mark"}, "--mark: there is no such option"},
      {{"join"}, "RUN_DIR is required"},
      {{"status", "run", "again"}, "\"again\": there is no such argument"},
  };
  for (const auto& [arguments, message] : table) EXPECT_THAT(refusal(arguments), HasSubstr(message));
}

TEST(CommandLineParser, ParsesRunDirectory) {
  const CommandLine status = parse({"status", "some/run"});
  EXPECT_EQ(status.action, Action::show_status);
  EXPECT_EQ(status.text, "some/run");
  EXPECT_EQ(parse({"join", "run"}).action, Action::join);
}

TEST(CommandLineParser, ParsesCheckpointCommands) {
  using checkpoint::Verb;
  const auto request = [](const std::vector<std::string>& words) {
    const CommandLine line = parse(words);
    EXPECT_EQ(line.action, Action::checkpoint);
    return line.checkpoint;
  };
  EXPECT_EQ(request({"checkpoint", "list", "run", "--verify"}).verb, Verb::list);
  EXPECT_TRUE(request({"checkpoint", "list", "run", "--verify"}).verify);
  EXPECT_FALSE(request({"checkpoint", "show", "run", "--no-norms"}).norms);
  EXPECT_TRUE(request({"checkpoint", "show", "run"}).norms);
  EXPECT_TRUE(request({"checkpoint", "verify", "run", "--json"}).json);
  EXPECT_FALSE(request({"checkpoint", "diff", "a", "b", "--no-slots"}).compare_slots);
  const auto written = request({"checkpoint", "export", "--variable", "v", "run", "out", "--variable=w",
                                "--format", "npz", "--slots"});
  EXPECT_EQ(written.verb, Verb::export_file);
  EXPECT_EQ(std::tie(written.from, written.to, written.format), std::make_tuple("run", "out", "npz"));
  EXPECT_EQ(written.variables, (std::vector<std::string>{"v", "w"}));
  EXPECT_TRUE(written.slots);
  EXPECT_FALSE(written.force);
  const auto read = request(
      {"checkpoint", "import", "f", "dir", "--variable", "w", "--step", "7", "--dataset", "a/b", "--force"});
  EXPECT_EQ(read.verb, Verb::import_file);
  EXPECT_EQ(std::tie(read.dataset, read.step, read.force), std::make_tuple("a/b", 7, true));
  EXPECT_EQ(request({"checkpoint", "reshard", "a", "b", "--parts", "8"}).parts, 8);
  EXPECT_THAT(refusal({"checkpoint"}), AllOf(HasSubstr("list"), HasSubstr("compact")));
  EXPECT_THAT(refusal({"checkpoint", "lst", "run"}), HasSubstr("did you mean list?"));
  EXPECT_THAT(refusal({"checkpoint", "reshard", "a", "b", "--parts", "many"}), HasSubstr("--parts"));
  EXPECT_THAT(parse({"checkpoint", "export", "--help"}).text, HasSubstr("capstan checkpoint export run"));
}

TEST(CommandLineParser, ParsesDoctorOptions) {
  const CommandLine line =
      parse({"doctor", "--json", "--only", "memlock,ranks", "--only", "ipc", "--checkpoint-dir", "run"});
  EXPECT_EQ(line.action, Action::doctor);
  EXPECT_TRUE(line.doctor.json);
  EXPECT_FALSE(line.doctor.list);
  EXPECT_EQ(line.doctor.only, (std::vector<std::string>{"memlock", "ranks", "ipc"}));
  EXPECT_EQ(line.doctor.checkpoint_dir, "run");
  EXPECT_TRUE(parse({"doctor", "--list"}).doctor.list);
  EXPECT_THAT(refusal({"doctor", "now"}), HasSubstr("\"now\": there is no such argument"));
  EXPECT_THAT(parse({"doctor", "--help"}).text, Not(HasSubstr("--probe")));
}

TEST(CommandLineParser, ParsesReportOptions) {
  const CommandLine line = parse({"report", "run", "--output", "r.txt", "--perf"});
  EXPECT_EQ(line.action, Action::report);
  EXPECT_EQ(line.report.run_dir, "run");
  EXPECT_EQ(line.report.output, "r.txt");
  EXPECT_TRUE(line.report.perf);
  EXPECT_EQ(parse({"report"}).report.output, "capstan-report.txt");
  EXPECT_THAT(refusal({"report", "run", "walk"}), HasSubstr("\"walk\": there is no such argument"));
}

TEST(CommandLineParser, ErrorsNameVariableAndConfigFile) {
  EXPECT_THAT(refusal({"train", "kge"}, {"CAPSTAN_DIMS=3"}),
              AllOf(HasSubstr("CAPSTAN_DIMS"), HasSubstr("CAPSTAN_DIM?")));
  for (const auto& [arguments, environment, asked] :
       {std::tuple<std::vector<std::string>, std::vector<std::string>, std::string>{
            {"settings", "--config", "/nowhere.toml"},
            {"CAPSTAN_CONFIG=/elsewhere.toml"},
            "--config /nowhere.toml"},
        {{"settings"}, {"CAPSTAN_CONFIG=/elsewhere.toml"}, "CAPSTAN_CONFIG /elsewhere.toml"}}) {
    try {
      parse(arguments, environment);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::not_found);
      EXPECT_THAT(error.what(), HasSubstr(asked));
    }
  }
  EXPECT_EQ(parse({"settings"}, {"CAPSTAN_CONFIG="}).action, Action::print_settings);
}

TEST(CommandLineParser, HelpAndVersionReturnText) {
  for (const std::string program : {"kge", "lr", "fm", "mf", "mlp", "deepfm", "dlrm", "dcn", "word2vec"}) {
    const CommandLine help = parse({"train", program, "--help-all"});
    EXPECT_EQ(help.action, Action::print_text);
    for (const Setting& setting : Settings::table()) {
      if (!accepts(program, setting)) continue;
      const std::string prefix = setting.kind == SettingKind::flag ? "--[no-]" : "--";
      EXPECT_THAT(help.text, HasSubstr(prefix + std::string(setting.name)));
    }
  }
  EXPECT_THAT(parse({"--help"}).text, AllOf(HasSubstr("train"), HasSubstr("settings")));
  EXPECT_THAT(parse({"--version"}).text, AllOf(HasSubstr("capstan "), HasSubstr("MPI"), HasSubstr("UCX")));
}

TEST(CommandLineParser, SettingsMergesOptionsAndEnvironment) {
  const CommandLine line = parse({"settings", "--dim", "7"}, {"CAPSTAN_BATCH=9"});
  EXPECT_EQ(line.action, Action::print_settings);
  EXPECT_EQ(line.settings.integer("dim"), 7);
  EXPECT_EQ(line.settings.integer("batch"), 9);
  EXPECT_EQ(parse({"settings", "--markdown"}).action, Action::print_settings_markdown);
}

}  // namespace
}  // namespace capstan::launch
