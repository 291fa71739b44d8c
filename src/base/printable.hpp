// printable.hpp -- escapes untrusted text for printing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace capstan {

/// Length of the UTF-8 sequence at the start of `text`: 1 to 4, or 0 if it is not valid.
/// REQUIRES: `text` is not empty.
std::size_t utf8_length(std::string_view text) noexcept;

/// Returns `text` in quotes for an error message, truncated after 60 bytes. Control characters and bytes that
/// are not UTF-8 appear as \n, \t or \x1b.
std::string printable(std::string_view text);

}  // namespace capstan
