// help_text.cpp -- two columns: names, and wrapped descriptions.
#include "launch/help/help_text.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace capstan::launch::help {
namespace {

constexpr std::size_t kNames = 24;  // columns of the names, after the indentation

void append_row(std::string& text, const std::string& name, const std::string& description,
                std::size_t width) {
  const std::size_t indent = kNames + 4;
  const auto lines = wrap(description, width - indent);
  text += "  " + name;
  bool same_line = name.size() <= kNames;
  if (same_line) text += std::string(kNames + 2 - name.size(), ' ');
  for (const std::string& line : lines) {
    if (!same_line) text += "\n" + std::string(indent, ' ');
    text += line;
    same_line = false;
  }
  text += "\n";
}

void append_wrapped(std::string& text, const std::string& paragraph, std::size_t width) {
  for (const std::string& line : wrap(paragraph, width)) text += line + "\n";
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back(word);
    } else {
      lines.back().append(" ").append(word);
    }
    at = end + 1;
  }
  return lines;
}

std::string help_text(const CommandPage& page, bool all, std::size_t width) {
  std::string text = fmt::format("usage: {}\n\n", page.usage);
  append_wrapped(text, sentence(page.summary), width);
  if (!page.operands.empty()) text += "\n";
  for (const OptionHelp& operand : page.operands)
    append_row(text, names_with_value(operand), operand.text, width);
  if (!page.subcommands.empty()) text += "\nCommands:\n";
  for (const auto& [name, summary] : page.subcommands) append_row(text, name, summary, width);
  std::string group;
  std::size_t hidden = 0;
  for (const OptionHelp& option : page.options) {
    if (option.is_common && !all) {
      ++hidden;
      continue;
    }
    if (option.group != group) text += fmt::format("\n{}:\n", group = option.group);
    append_row(text, names_with_value(option), text_with_default(option), width);
  }
  if (hidden > 0) {
    text += "\n";
    append_wrapped(
        text, fmt::format("`{} --help-all` also lists {} settings that every job has.", page.path, hidden),
        width);
  }
  if (!page.examples.empty()) text += "\nExamples:\n";
  for (const std::string& example : page.examples) text += "  " + example + "\n";
  if (!page.exit_codes.empty()) text += "\nExit codes:\n";
  for (const auto& [code, meaning] : page.exit_codes) text += fmt::format("  {:<3}  {}\n", code, meaning);
  if (!page.further.empty()) text += fmt::format("\nSee docs/{}.\n", page.further);
  return text;
}

std::size_t help_width() {
  long columns = 100;
  winsize size{};
  if (const char* variable = std::getenv("COLUMNS"); variable != nullptr && *variable != '\0') {
    columns = std::strtol(variable, nullptr, 10);
  } else if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    columns = size.ws_col;
  }
  return static_cast<std::size_t>(std::clamp(columns, 60L, 120L));
}

}  // namespace capstan::launch::help
