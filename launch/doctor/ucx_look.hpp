// ucx_look.hpp -- what UCX itself says about its variables, devices and transports: a process of its own
// opens it.
//
// Opening UCX may take half a minute on a host with many devices, and what it complains of goes to its log;
// so a child does it, which can be killed and whose output is read.
#pragma once

#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"
#include "transport/ucx/offer.hpp"

namespace capstan::launch::doctor {

struct UcxLook {
  std::string failure = {};  ///< UCX could not be opened, and why
  transport::UcxOffer offer = {};
  std::vector<std::string> known = {};       ///< some of UCX's variables, for a suggestion
  std::vector<std::string> unused = {};      ///< variables that UCX does not know, or not on this host
  std::vector<std::string> complaints = {};  ///< UCX's other warnings and errors, without time and place
};

/// The child: opens UCX and prints what it finds, as JSON, on the last line. Returns the exit code.
int look_at_ucx();

/// From the child's output. Lines of UCX's log may precede the JSON.
UcxLook read_ucx_look(const std::string& output);

Finding check_ucx_variables(const Request& request);
Finding check_ucx_devices(const Request& request);

/// Unknown and malformed variables.
Finding judge_ucx_variables(const UcxLook& look);
/// Devices and transports that are asked for and do not exist; whether a network is left.
Finding judge_ucx_devices(const UcxLook& look);

}  // namespace capstan::launch::doctor
