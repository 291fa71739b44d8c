// help.cpp -- answers --help and rejects unknown options before the main() of an example runs.
//
// It is linked into each example, so that the examples need no code for options. CMakeLists.txt has the
// texts. check_options() relies on glibc, which passes the arguments of main() to constructors.
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace {

constexpr const char* kOptions =
    "\n"
    "Options:\n"
    "  --help                     print this help and exit\n"
    "  --capstan-SETTING=VALUE    for example --capstan-ps=2; `capstan settings` lists all\n";

[[gnu::constructor]] void check_options(int argc, char** argv, char**) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      std::printf("usage: %s\n\n%s\n%s", CAPSTAN_EXAMPLE_USAGE, CAPSTAN_EXAMPLE_TEXT, kOptions);
      std::fflush(stdout);
      _exit(0);
    }
    if (word.starts_with("-") && word.size() > 1 && !word.starts_with("--capstan-")) {
      std::fprintf(stderr, "unknown option %s; usage: %s\n", argv[i], CAPSTAN_EXAMPLE_USAGE);
      _exit(2);
    }
  }
}

}  // namespace
