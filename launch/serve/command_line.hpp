// command_line.hpp -- declares `capstan serve`.
#pragma once

#include <CLI/CLI.hpp>

#include "launch/serve/request.hpp"

namespace capstan::launch::serve {

/// The options of the command, and their values after parsing.
class Options {
 public:
  explicit Options(CLI::App& app);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  CLI::App& command() noexcept { return command_; }
  /// Throws Error(invalid_argument) for an invalid size or time, or unless one of --socket and --port is
  /// given.
  Request request() const;

 private:
  CLI::App& command_;
  Request request_;
  std::string max_body_, timeout_, idle_timeout_, reload_;
};

}  // namespace capstan::launch::serve
