// program_path.hpp -- whether a program can be started on this host.
#pragma once

#include <string>

namespace capstan::launch::run {

/// Looks for `program` as execvp does, in the directories of `path` if its name has no slash. `path` is the
/// value of PATH; null: it is not set. Returns 0 if the program can be executed, else ENOENT or EACCES.
int program_error(const std::string& program, const char* path);

}  // namespace capstan::launch::run
