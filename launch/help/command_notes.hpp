// command_notes.hpp -- examples, exit codes and further reading of each command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capstan::launch::help {

struct ExitNote {
  int code;
  std::string_view meaning = "";  // "": the usual meaning, see describe_exit_code()
};

struct CommandNotes {
  std::string_view usage = "";  // follows the operands
  std::vector<std::string_view> examples = {};
  std::vector<ExitNote> exits = {};
  std::string_view page = "";  // a file in docs/
};

/// `path` is "capstan train kge". Returns empty notes for a path that is not in the table.
const CommandNotes& notes_of(std::string_view path);
std::string meaning_of(const ExitNote& note);

}  // namespace capstan::launch::help
