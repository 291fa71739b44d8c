// command_page.hpp -- the description of a command that help, man pages, completions and docs/command_line.md
// are rendered from.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace capstan::launch::help {

/// An option, or an operand: a word without a leading "-".
struct OptionHelp {
  std::vector<std::string> names;    // {"-h", "--help"}; {"RUN_DIR"} for an operand
  bool negatable = false;            // --NAME has an opposite --no-NAME
  std::string value;                 // "N", "a|b"; "" for a flag or an operand
  std::vector<std::string> choices;  // the values that it accepts; empty: any
  std::string text;                  // a phrase that starts with a lower-case letter
  std::string default_value;         // "" if there is none
  std::string group;                 // heading
  bool is_common = false;            // accepted by every job: only --help-all lists it
};

struct CommandPage {
  std::string path;     // "capstan train kge"
  std::string summary;  // a phrase that starts with a lower-case letter
  std::string usage;    // "capstan train kge [OPTIONS]"
  std::vector<OptionHelp> operands;
  std::vector<OptionHelp> options;                               // in order of groups
  std::vector<std::pair<std::string, std::string>> subcommands;  // name and summary
  std::vector<std::string> examples;                             // command lines
  std::vector<std::pair<int, std::string>> exit_codes;           // with their meaning
  std::string further;                                           // a file in docs/; "" if there is none
};

/// "--[no-]resume", "-h, --help", "--dim N"
std::string names_with_value(const OptionHelp& option);
/// The text with the default: "length of a row (default: 256)".
std::string text_with_default(const OptionHelp& option);
/// "Train a model.", from "train a model"
std::string sentence(const std::string& phrase);

}  // namespace capstan::launch::help
