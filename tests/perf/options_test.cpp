// options_test.cpp -- flags with three states.
#include "perf/bench/options.hpp"

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

namespace capstan::perf {
namespace {

Options parsed(const std::string& arguments) {
  CLI::App app;
  Options options;
  add_options(app, options);
  app.parse(arguments);
  return options;
}

TEST(Options, TheNetworkDecidesOnTheTcpBoundUnlessAFlagDoes) {
  EXPECT_EQ(parsed("").tcp_bound, std::nullopt);
  EXPECT_EQ(parsed("--tcp-bound").tcp_bound, true);
  EXPECT_EQ(parsed("--no-tcp-bound").tcp_bound, false);
}

}  // namespace
}  // namespace capstan::perf
