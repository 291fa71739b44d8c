// help_test.cpp -- tests of help, man pages, completions and docs/command_line.md, from one table.
// Tests: launch/help/command_notes.cpp
// Tests: launch/help/command_page.cpp
// Tests: launch/help/completions.cpp
// Tests: launch/help/describe.cpp
// Tests: launch/help/help_text.cpp
// Tests: launch/help/install.cpp
// Tests: launch/help/man_page.cpp
// Tests: launch/help/markdown.cpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "launch/command_line.hpp"
#include "launch/help/command_notes.hpp"
#include "launch/help/completions.hpp"
#include "launch/help/help_text.hpp"
#include "launch/help/install.hpp"
#include "launch/help/man_page.hpp"

namespace capstan::launch::help {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

CommandLine command_line(std::vector<const char*> words) {
  words.insert(words.begin(), "capstan");
  const char* const environment[] = {nullptr};
  const auto count = static_cast<int>(words.size());
  words.push_back(nullptr);
  return parse_command_line(count, words.data(), environment);
}

const std::vector<CommandPage>& all_pages() {
  static const std::vector<CommandPage> pages = command_line({"help", "--install", "nowhere"}).pages;
  return pages;
}

const CommandPage& page_of(const std::string& path) {
  for (const CommandPage& page : all_pages())
    if (page.path == path) return page;
  throw Error(Code::not_found, path);
}

/// A command with one option of each kind.
CommandPage small_page() {
  CommandPage page;
  page.path = "capstan turn";
  page.summary = "turn the capstan";
  page.usage = "capstan turn [OPTIONS] SHIP";
  page.operands = {{.names = {"SHIP"}, .text = "the ship"}};
  page.options = {
      {.names = {"--speed"},
       .value = "slow|fast",
       .choices = {"slow", "fast"},
       .text = "rate of the turn",
       .default_value = "slow",
       .group = "Options"},
      {.names = {"--song"}, .negatable = true, .text = "sing it's shanty", .group = "Options"},
      {.names = {"--ps"}, .value = "N", .text = "number of ps", .group = "Settings", .is_common = true}};
  page.examples = {"capstan turn Ship"};
  page.exit_codes = {{0, "success"}};
  return page;
}

TEST(Help, WrapsAtSpacesAndKeepsLongWords) {
  EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("unbreakable a", 5), ElementsAre("unbreakable", "a"));
  EXPECT_TRUE(wrap("", 5).empty());
}

TEST(Help, ListsOwnOptionsWithDefaultsAndHidesCommonOnes) {
  const std::string text = help_text(small_page(), false, 80);
  EXPECT_THAT(text, AllOf(HasSubstr("usage: capstan turn [OPTIONS] SHIP\n\nTurn the capstan.\n"),
                          HasSubstr("  --speed slow|fast         rate of the turn (default: slow)\n"),
                          HasSubstr("--[no-]song"), Not(HasSubstr("--ps")),
                          HasSubstr("`capstan turn --help-all` also lists 1 settings"),
                          HasSubstr("Examples:\n  capstan turn Ship\n"), HasSubstr("  0    success\n")));
  EXPECT_THAT(help_text(small_page(), true, 80),
              AllOf(HasSubstr("Settings:\n  --ps N"), Not(HasSubstr("help-all"))));
}

TEST(Help, FitsTheWidth) {
  for (const CommandPage& page : all_pages()) {
    std::istringstream lines(help_text(page, true, 80));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  -") || line.starts_with("  capstan") || line.starts_with("  mpirun")) continue;
      EXPECT_LE(line.size(), 80U) << page.path << ": " << line;
    }
  }
}

TEST(Help, EveryCommandHasThreeExamplesOfItselfAndExitCodes) {
  for (const CommandPage& page : all_pages()) {
    EXPECT_FALSE(page.summary.empty()) << page.path;
    EXPECT_GE(page.examples.size(), page.path == "capstan trace" ? 2U : 3U) << page.path;
    EXPECT_FALSE(page.exit_codes.empty()) << page.path;
    EXPECT_FALSE(page.further.empty()) << page.path;
    EXPECT_TRUE(std::filesystem::exists(std::string(CAPSTAN_SOURCE_DIR) + "/docs/" + page.further))
        << page.further;
    bool shows_itself = false;
    for (const std::string& example : page.examples)
      shows_itself |= example.find(page.path) != std::string::npos;
    EXPECT_TRUE(shows_itself) << page.path;
    for (const auto& [code, meaning] : page.exit_codes)
      EXPECT_FALSE(meaning.empty()) << page.path << " " << code;
  }
}

TEST(Help, ExamplesParse) {
  for (const CommandPage& page : all_pages()) {
    for (const std::string& example : page.examples) {
      std::istringstream stream(example.substr(example.find("capstan ")));
      std::vector<std::string> words;
      for (std::string word; stream >> word;) words.push_back(word);
      std::vector<const char*> arguments;
      for (std::size_t i = 1; i < words.size(); ++i) arguments.push_back(words[i].c_str());
      if (words.size() > 3 && words[1] == "settings") continue;  // its settings file does not exist
      EXPECT_NO_THROW((void)command_line(arguments)) << example;
    }
  }
}

TEST(Help, OfATrainerStartsWithItsOwnOptions) {
  const CommandPage& kge = page_of("capstan train kge");
  EXPECT_EQ(kge.options.front().group, "Options of kge");
  EXPECT_TRUE(kge.options.back().is_common);
  for (const Setting& setting : Settings::table()) {
    if (setting.group != "runtime" && setting.group != "kge") continue;
    const std::string name = "--" + std::string(setting.name);
    EXPECT_TRUE(std::any_of(kge.options.begin(), kge.options.end(), [&](const OptionHelp& option) {
      return option.names.front() == name;
    })) << name;
  }
}

TEST(Help, OfAFlagShowsItsOppositeAndDefault) {
  const CommandPage& kge = page_of("capstan train kge");
  const auto found = std::find_if(kge.options.begin(), kge.options.end(), [](const OptionHelp& option) {
    return names_with_value(option) == "--[no-]look-ahead";
  });
  ASSERT_NE(found, kge.options.end());
  EXPECT_EQ(found->default_value, "on");
}

TEST(Help, CommandPrintsTheHelpOfAnother) {
  EXPECT_EQ(command_line({"help", "train", "kge"}).text, command_line({"train", "kge", "--help"}).text);
  EXPECT_EQ(command_line({"help", "train", "kge", "--all"}).text,
            command_line({"train", "kge", "--help-all"}).text);
  EXPECT_EQ(command_line({"help"}).text, command_line({"--help"}).text);
}

TEST(Help, ErrorsNameTheHelpOfTheirCommand) {
  const auto error_in = [](const std::vector<const char*>& words) -> std::string {
    try {
      (void)command_line(words);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_in({"train", "kge", "--dimm", "3"}), HasSubstr("capstan train kge --help"));
  EXPECT_THAT(error_in({"train", "kge", "--dim"}), HasSubstr("capstan train kge --help"));
  EXPECT_THAT(error_in({"checkpoint", "lst"}),
              AllOf(HasSubstr("list"), HasSubstr("capstan checkpoint --help")));
  EXPECT_THAT(error_in({"help", "tain"}), HasSubstr("train"));
  EXPECT_THAT(error_in({"help", "--completions", "tcsh"}), HasSubstr("bash|zsh|fish"));
}

TEST(Help, OperandsMayHaveTheNamesOfCommands) {
  const CommandLine line = command_line({"status", "run"});
  EXPECT_EQ(line.action, Action::show_status);
  EXPECT_EQ(line.text, "run");
}

TEST(ManPage, EscapesRoffSyntax) {
  EXPECT_EQ(man_name("capstan train kge"), "capstan-train-kge");
  CommandPage page = small_page();
  page.examples = {".hidden \\n"};
  const std::string text = man_page(page);
  EXPECT_THAT(text, AllOf(HasSubstr(".TH \"capstan-turn\" 1"), HasSubstr(".B \\-\\-speed slow|fast\n"),
                          HasSubstr("\\&.hidden \\en\n"), HasSubstr(".SH EXIT STATUS\n.TP\n.B 0\nsuccess\n"),
                          HasSubstr(".B \\-\\-ps N\n")));
}

TEST(Completions, QuoteForTheShell) {
  const std::vector<CommandPage> pages{{.path = "capstan", .subcommands = {{"turn", "turn the capstan"}}},
                                       small_page()};
  EXPECT_THAT(completions(pages, "bash"), AllOf(HasSubstr("'capstan turn:--speed') words='slow fast'"),
                                                HasSubstr("--no-song"), HasSubstr("--ps")));
  EXPECT_THAT(completions(pages, "zsh"), AllOf(HasSubstr("'--speed[rate of the turn]:value:(slow fast)'"),
                                               HasSubstr("sing it'\\''s shanty")));
  EXPECT_THAT(
      completions(pages, "fish"),
      AllOf(HasSubstr("-n '__capstan_at capstan turn' -l speed -x -a 'slow fast'"), HasSubstr("-a 'turn'")));
}

TEST(Install, WritesThePathsThatManAndShellsSearch) {
  const std::filesystem::path share = std::filesystem::path(testing::TempDir()) / "capstan_help_share";
  std::filesystem::remove_all(share);
  install(all_pages(), share);
  for (const char* file :
       {"man/man1/capstan.1", "man/man1/capstan-train-kge.1", "bash-completion/completions/capstan",
        "zsh/site-functions/_capstan", "fish/vendor_completions.d/capstan.fish"})
    EXPECT_TRUE(std::filesystem::exists(share / file)) << file;
  std::filesystem::remove_all(share);
  EXPECT_THROW(install(all_pages(), "/dev/null/share"), Error);
}

TEST(CommandLinePage, EqualsTheOutputOfTheProgram) {
  std::ifstream file(std::string(CAPSTAN_SOURCE_DIR) + "/docs/command_line.md");
  EXPECT_EQ(command_line({"help", "--markdown"}).text, std::string(std::istreambuf_iterator<char>(file), {}))
      << "update it: build/release/bin/capstan help --markdown > docs/command_line.md";
}

}  // namespace
}  // namespace capstan::launch::help
