// install.hpp -- man pages and completions, as files of an installation.
#pragma once

#include <filesystem>
#include <span>

#include "launch/help/command_page.hpp"

namespace capstan::launch::help {

/// Writes the pages below `share` (/usr/share): man/man1, bash-completion/completions, zsh/site-functions
/// and fish/vendor_completions.d. Throws Error: permission_denied, resource_exhausted.
void install(std::span<const CommandPage> pages, const std::filesystem::path& share);

}  // namespace capstan::launch::help
