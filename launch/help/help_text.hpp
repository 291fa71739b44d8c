// help_text.hpp -- the text of --help and of --help-all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "launch/help/command_page.hpp"

namespace capstan::launch::help {

/// Breaks `text` at spaces into lines of at most `width` characters; a longer word has a line of its own.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// The page for a terminal of `width` columns. `all`: with the settings of every job.
std::string help_text(const CommandPage& page, bool all, std::size_t width);

/// Columns for help on standard output: COLUMNS, else those of the terminal, else 100; at least 60, at most
/// 120.
std::size_t help_width();

}  // namespace capstan::launch::help
