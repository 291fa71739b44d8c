// describe.cpp -- converts the parser's commands and options to pages.
#include "launch/help/describe.hpp"

#include <algorithm>
#include <string_view>

#include "launch/help/command_notes.hpp"

namespace capstan::launch::help {
namespace {

constexpr const char* kHelpGroup = "Help";

std::string path_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : path_of(*parent) + " " + command.get_name();
}

std::vector<std::string> choices_of(const std::string& value) {
  std::vector<std::string> choices;
  if (value.find('|') == std::string::npos) return choices;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find('|', at), value.size());
    choices.push_back(value.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

/// Returns the position of the option's group in the help of a command whose last word is `word`.
int rank_of(const OptionHelp& option, const std::string& word) {
  if (option.is_common) return 4;
  if (option.group == kHelpGroup) return 3;
  if (option.group == "Options of " + word) return 0;
  return option.group == "Options" ? 2 : 1;
}

OptionHelp describe(const CLI::Option& option) {
  OptionHelp help;
  for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    if (!help.names.empty() && "--no-" + help.names.front().substr(2) == "--" + name) {
      help.negatable = true;
    } else {
      help.names.push_back("--" + name);
    }
  }
  const bool is_operand = help.names.empty();
  if (is_operand) help.names.push_back(option.get_name(true));
  if (!is_operand && option.get_items_expected_max() > 0) help.value = option.get_type_name();
  help.choices = choices_of(help.value);
  help.text = option.get_description();
  help.default_value = option.get_default_str();
  const bool prints_help = help.names.back() == "--help" || help.names.back() == "--help-all";
  help.group = prints_help ? kHelpGroup : option.get_group();
  help.is_common = help.group.starts_with(kCommonGroup);
  return help;
}

}  // namespace

CommandPage describe(const CLI::App& command) {
  CommandPage page;
  page.path = path_of(command);
  page.summary = command.get_description();
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    OptionHelp help = describe(*option);
    (option->get_positional() && !help.names.front().starts_with("-") ? page.operands : page.options)
        .push_back(std::move(help));
  }
  std::stable_sort(page.options.begin(), page.options.end(), [&](const OptionHelp& a, const OptionHelp& b) {
    return rank_of(a, command.get_name()) < rank_of(b, command.get_name());
  });
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    page.subcommands.emplace_back(sub->get_name(), sub->get_description());
  const CommandNotes& notes = notes_of(page.path);
  page.usage = page.path + (page.subcommands.empty() ? " [OPTIONS]" : " COMMAND [OPTIONS]");
  for (const OptionHelp& operand : page.operands) page.usage += " " + operand.names.front();
  page.usage += notes.usage;
  page.examples.assign(notes.examples.begin(), notes.examples.end());
  for (const ExitNote& note : notes.exits) page.exit_codes.emplace_back(note.code, meaning_of(note));
  page.further = notes.page;
  return page;
}

std::vector<CommandPage> describe_all(const CLI::App& command) {
  std::vector<CommandPage> pages{describe(command)};
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
    for (CommandPage& page : describe_all(*sub)) pages.push_back(std::move(page));
  }
  return pages;
}

}  // namespace capstan::launch::help
