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

/// The subcommand, and what its options were given.
class Options {
 public:
  explicit Options(CLI::App& app);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  CLI::App& command();
  /// `program` stood behind the `--`; the roles are those of `environment` (as `environ`) where no option
  /// says otherwise. Throws Error(invalid_argument).
  Request request(std::vector<std::string> program, const char* const* environment) const;

 private:
  struct Values;
  std::unique_ptr<Values> values_;
};

}  // namespace capstan::launch::run
