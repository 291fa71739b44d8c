// command_line.hpp -- declares `capstan plan`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "launch/plan/request.hpp"

namespace capstan::launch::plan {

/// The options of the command, and their values after parsing.
class Options {
 public:
  explicit Options(CLI::App& app);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  CLI::App& command() noexcept { return command_; }
  /// Throws Error(invalid_argument) for an invalid bandwidth, time or size, and for options that exclude each
  /// other.
  Request request() const;

 private:
  void reject_conflicts() const;

  CLI::App& command_;
  Request request_;
  std::string bandwidth_ = "100Gb/s", latency_ = "2us", compute_ = "10ms", ps_memory_, mode_ = "asynchronous";
  int links_ = 1, slots_ = 0, staleness_ = 2, cores_ = 0;
};

}  // namespace capstan::launch::plan
