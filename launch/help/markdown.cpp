// markdown.cpp -- a section for each command.
#include "launch/help/markdown.hpp"

#include <fmt/format.h>

namespace capstan::launch::help {
namespace {

constexpr const char* kIntroduction = R"(# Command line

Reference of the `capstan` program, one section for each command. The program prints this page:
`capstan help --markdown > docs/command_line.md`.

| you want | command |
|---|---|
| help for a command | `capstan help train kge`, or `capstan train kge --help` |
| all of its options | `capstan train kge --help-all` |
| a man page | `man capstan-train-kge`, after `cmake --install` |
| completions without an installation | `source <(capstan help --completions bash)` |

Options that every job accepts are [settings](settings.md); they are also variables (`CAPSTAN_PS`)
and entries of a settings file. [Errors](errors.md) explains the exit codes.
)";

/// Escapes "|", which would end the table cell.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string markdown(std::span<const CommandPage> pages) {
  std::string text = kIntroduction;
  for (const CommandPage& page : pages) {
    text +=
        fmt::format("\n## {}\n\n{}\n\n```console\n{}\n```\n", page.path, sentence(page.summary), page.usage);
    std::string rows;
    for (const OptionHelp& operand : page.operands)
      rows += fmt::format("| `{}` | {} | |\n", cell(names_with_value(operand)), cell(operand.text));
    for (const auto& [name, summary] : page.subcommands)
      rows += fmt::format("| `{}` | {} | |\n", name, cell(summary));
    std::size_t common = 0;
    for (const OptionHelp& option : page.options) {
      if (option.is_common) {
        ++common;
      } else {
        rows += fmt::format("| `{}` | {} | {} |\n", cell(names_with_value(option)), cell(option.text),
                            cell(option.default_value));
      }
    }
    if (!rows.empty()) text += "\n| | | default |\n|---|---|---|\n" + rows;
    if (common > 0) text += "\nIt also accepts [settings](settings.md) as options.\n";
    if (!page.examples.empty()) text += "\n```console\n";
    for (const std::string& example : page.examples) text += example + "\n";
    if (!page.examples.empty()) text += "```\n";
    if (!page.exit_codes.empty()) text += "\n| exit code | |\n|---|---|\n";
    for (const auto& [code, meaning] : page.exit_codes) text += fmt::format("| {} | {} |\n", code, meaning);
    if (!page.further.empty() && page.further != "command_line.md")
      text += fmt::format("\nSee [{0}]({0}).\n", page.further);
  }
  return text;
}

}  // namespace capstan::launch::help
