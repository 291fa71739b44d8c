// request.hpp -- what the user of `capstan doctor` asked for.
#pragma once

#include <string>
#include <vector>

namespace capstan::launch::doctor {

struct Request {
  bool list = false;
  bool json = false;
  std::vector<std::string> only = {};  // names of checks; empty: all
  std::string checkpoint_dir = {};
  std::string look = {};  // "ucx" or "gpu"; not for users: this is the child that looks for another doctor
};

}  // namespace capstan::launch::doctor
