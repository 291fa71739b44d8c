// program_path.hpp -- whether a program can be started on this host.
#pragma once

#include <string>
#include <string_view>

namespace capstan::launch::run {

/// Looks for `program` as execvp does, in the directories of `path` if its name has no slash. Returns 0 if it
/// can be executed, else ENOENT or EACCES.
int program_error(const std::string& program, std::string_view path);

}  // namespace capstan::launch::run
