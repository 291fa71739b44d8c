// install.cpp -- the paths at which man(1) and the shells search.
#include "launch/help/install.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

#include "capstan/error.hpp"
#include "launch/help/completions.hpp"
#include "launch/help/man_page.hpp"

namespace capstan::launch::help {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ofstream out(file, std::ios::trunc);
  out << text << std::flush;
  if (!out) {
    const Code code = errno == EACCES || errno == EPERM || errno == EROFS ? Code::permission_denied
                                                                          : Code::resource_exhausted;
    throw Error(code,
                "cannot write " + file.string() + ": " + (error ? error.message() : std::strerror(errno)));
  }
}

}  // namespace

void install(std::span<const CommandPage> pages, const fs::path& share) {
  for (const CommandPage& page : pages)
    write(share / "man/man1" / (man_name(page.path) + ".1"), man_page(page));
  write(share / "bash-completion/completions/capstan", completions(pages, "bash"));
  write(share / "zsh/site-functions/_capstan", completions(pages, "zsh"));
  write(share / "fish/vendor_completions.d/capstan.fish", completions(pages, "fish"));
}

}  // namespace capstan::launch::help
