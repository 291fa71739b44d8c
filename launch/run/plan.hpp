// plan.hpp -- derives the command that starts the ranks from the request and the launch context.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/run/hosts.hpp"
#include "launch/run/launch_context.hpp"
#include "launch/run/request.hpp"

namespace capstan::launch::run {

struct Plan {
  std::vector<std::string> command;
  /// Environment of the command; the ranks take their roles from it.
  std::vector<std::pair<std::string, std::string>> variables = {};
  int ranks = 1;

  /// Variables and command as one line, quoted for a shell.
  std::string text() const;
};

/// `hosts` is the content of the file request.hosts. Throws Error: invalid_argument, failed_precondition,
/// not_found or unimplemented. The message suggests a request that would work.
Plan make_plan(const Request& request, const LaunchContext& context, const std::vector<Host>& hosts);

}  // namespace capstan::launch::run
