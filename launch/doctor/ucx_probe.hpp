// ucx_probe.hpp -- variables, devices and transports as UCX reports them, from a child process that opens
// UCX.
//
// Opening UCX may take half a minute on a host with many devices, and its warnings go to its log. A child can
// be killed, and its output parsed.
#pragma once

#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"
#include "transport/ucx/offer.hpp"

namespace capstan::launch::doctor {

/// Parsed output of the child.
struct UcxProbe {
  std::string failure = {};  ///< why UCX could not be opened; "" on success
  transport::UcxOffer offer = {};
  std::vector<std::string> known = {};       ///< variables of UCX, for suggestions
  std::vector<std::string> unused = {};      ///< variables that are set, and that UCX does not use here
  std::vector<std::string> complaints = {};  ///< other warnings and errors of UCX, without prefix
};

/// Runs in the child: opens UCX and prints the result as JSON on the last line. Returns the exit code.
int run_ucx_probe();

/// Parses the output of the child, in which lines of the UCX log may precede the JSON.
UcxProbe parse_ucx_probe(const std::string& output);

Finding check_ucx_variables(const Request& request);
Finding check_ucx_devices(const Request& request);

/// Judges unknown and malformed variables.
Finding judge_ucx_variables(const UcxProbe& probe);
/// Judges requested devices and transports that do not exist, and whether a network transport remains.
Finding judge_ucx_devices(const UcxProbe& probe);

}  // namespace capstan::launch::doctor
