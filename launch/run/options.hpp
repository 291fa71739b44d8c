// options.hpp -- the options of `capstan run` on the command line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/run/request.hpp"

namespace CLI {
class App;
}

namespace capstan::launch::run {

/// The subcommand `run` and the values of its options.
class Options {
 public:
  explicit Options(CLI::App& app);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  CLI::App& command();
  /// `program` holds the words after the `--`. Options override the roles of `environment`, which has the
  /// format of `environ`. Throws Error(invalid_argument).
  Request request(std::vector<std::string> program, const char* const* environment) const;

 private:
  struct Values;
  std::unique_ptr<Values> values_;
};

}  // namespace capstan::launch::run
