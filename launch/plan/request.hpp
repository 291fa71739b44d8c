// request.hpp -- options of `capstan plan`.
#pragma once

#include <string>

#include "simulate/plan.hpp"

namespace capstan::launch::plan {

struct Request {
  simulate::PlanRequest plan = {};
  std::string constants = {};  // file that replaces default constants; "": none
  bool json = false;
};

}  // namespace capstan::launch::plan
