// completions.cpp -- scripts for bash, zsh and fish.
#include "launch/help/completions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.hpp"

namespace capstan::launch::help {
namespace {

/// All spellings of an option.
std::vector<std::string> spellings(const OptionHelp& option) {
  std::vector<std::string> names = option.names;
  if (option.negatable) names.push_back("--no-" + option.names.front().substr(2));
  return names;
}

/// In single quotes, for any of the shells.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

/// Returns a shell pattern of all subcommands: 'capstan train' | 'capstan train kge' | ...
std::string paths_of(std::span<const CommandPage> pages, std::string_view separator) {
  std::vector<std::string> paths;
  for (const CommandPage& page : pages.subspan(1)) paths.push_back(in_quotes(page.path));
  return fmt::format("{}", fmt::join(paths, separator));
}

std::string for_bash(std::span<const CommandPage> pages) {
  std::string values, words;
  for (const CommandPage& page : pages) {
    std::vector<std::string> options, commands;
    for (const OptionHelp& option : page.options) {
      for (const std::string& name : spellings(option)) {
        options.push_back(name);
        if (option.value.empty()) continue;
        values += fmt::format("    {}) words={} ;;\n", in_quotes(page.path + ":" + name),
                              in_quotes(fmt::format("{}", fmt::join(option.choices, " "))));
      }
    }
    for (const auto& [name, summary] : page.subcommands) commands.push_back(name);
    words += fmt::format("        {}) commands={} options={} ;;\n", in_quotes(page.path),
                         in_quotes(fmt::format("{}", fmt::join(commands, " "))),
                         in_quotes(fmt::format("{}", fmt::join(options, " "))));
  }
  return fmt::format(
      R"(# Completion of capstan for bash.
_capstan() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command=capstan i
  local words='' commands='' options=''
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${{COMP_WORDS[i]}}" in
      {}) command+=" ${{COMP_WORDS[i]}}" ;;
      'capstan run --') return ;;
    esac
  done
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $before == '=' ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case "$command:$before" in
{}    *)
      case $command in
{}      esac
      if [[ $current == -* ]]; then words=$options; else words=$commands; fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _capstan capstan
)",
      paths_of(pages, " | "), values, words);
}

std::string for_zsh(std::span<const CommandPage> pages) {
  // Escapes the characters that would end a description in a specification of _arguments.
  const auto description = [](const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  };
  std::string cases;
  for (const CommandPage& page : pages) {
    std::vector<std::string> specifications, commands;
    for (const OptionHelp& option : page.options) {
      for (const std::string& name : spellings(option)) {
        std::string text = fmt::format("{}[{}]", name, description(option.text));
        if (!option.choices.empty()) {
          text += fmt::format(":value:({})", fmt::join(option.choices, " "));
        } else if (!option.value.empty()) {
          text += ":" + option.value + ":_files";
        }
        specifications.push_back(in_quotes(text));
      }
    }
    for (const auto& [name, summary] : page.subcommands)
      commands.push_back(in_quotes(name + ":" + description(summary)));
    if (!commands.empty()) {
      cases += fmt::format(
          "    ({})\n      commands=({})\n      if [[ $PREFIX == -* ]]; then _arguments {}; else _describe "
          "command "
          "commands; fi\n      ;;\n",
          in_quotes(page.path), fmt::join(commands, " "), fmt::join(specifications, " "));
    } else {
      cases += fmt::format("    ({})\n      _arguments {} '*:file:_files'\n      ;;\n", in_quotes(page.path),
                           fmt::join(specifications, " \\\n        "));
    }
  }
  return fmt::format(
      R"(#compdef capstan
# Completion of capstan for zsh.
_capstan() {{
  local command=capstan word
  local -a commands
  for word in ${{words[2,CURRENT-1]}}; do
    case "$command $word" in
      ({}) command+=" $word" ;;
    esac
  done
  case $command in
{}  esac
}}
_capstan "$@"
)",
      paths_of(pages, " | "), cases);
}

std::string for_fish(std::span<const CommandPage> pages) {
  std::string text = fmt::format(
      R"(# Completion of capstan for fish.
function __capstan_at
  set -l path capstan
  for word in (commandline -opc)[2..]
    switch "$path $word"
      case {}
        set path "$path $word"
    end
  end
  test "$path" = "$argv"
end
)",
      paths_of(pages, " "));
  for (const CommandPage& page : pages) {
    const std::string at = fmt::format("complete -c capstan -n {}", in_quotes("__capstan_at " + page.path));
    for (const auto& [name, summary] : page.subcommands)
      text += fmt::format("{} -f -a {} -d {}\n", at, in_quotes(name), in_quotes(summary));
    for (const OptionHelp& option : page.options) {
      for (const std::string& name : spellings(option)) {
        const bool is_short = !name.starts_with("--");
        text += fmt::format("{} {} {}", at, is_short ? "-s" : "-l", name.substr(is_short ? 1 : 2));
        if (!option.choices.empty()) {
          text += fmt::format(" -x -a {}", in_quotes(fmt::format("{}", fmt::join(option.choices, " "))));
        } else if (!option.value.empty()) {
          text += " -r";
        }
        text += fmt::format(" -d {}\n", in_quotes(option.text));
      }
    }
  }
  return text;
}

}  // namespace

std::string completions(std::span<const CommandPage> pages, std::string_view shell) {
  if (shell == "bash") return for_bash(pages);
  if (shell == "zsh") return for_zsh(pages);
  CAPSTAN_ASSERT(shell == "fish");
  return for_fish(pages);
}

}  // namespace capstan::launch::help
