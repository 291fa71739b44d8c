// plan.hpp -- from what was asked for and where we are to the command that starts the ranks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/run/hosts.hpp"
#include "launch/run/place.hpp"
#include "launch/run/request.hpp"

namespace capstan::launch::run {

struct Plan {
  std::vector<std::string> command;
  /// Which the command needs; the ranks take their roles from them.
  std::vector<std::pair<std::string, std::string>> variables = {};
  int ranks = 1;

  /// As a line for a shell, with its variables.
  std::string text() const;
};

/// `hosts` are those of request.hosts. Throws Error(invalid_argument, failed_precondition, not_found) that
/// says what would fit.
Plan make_plan(const Request& request, const Place& place, const std::vector<Host>& hosts);

}  // namespace capstan::launch::run
