// request.hpp -- options of `capstan doctor`.
#pragma once

#include <string>
#include <vector>

namespace capstan::launch::doctor {

struct Request {
  bool list = false;
  bool json = false;
  std::vector<std::string> only = {};  // names of checks; empty: all
  std::string checkpoint_dir = {};
  std::string probe = {};  // --probe, internal: "ucx" or "gpu" in a child process that probes for its parent
};

}  // namespace capstan::launch::doctor
