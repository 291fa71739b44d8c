// report.hpp -- the output of `capstan plan`.
#pragma once

#include <string>

#include "simulate/plan.hpp"

namespace capstan::launch::plan {

/// Formats the recommended number of ps, the predicted step, the bounds of a step, longest first, and the
/// other numbers of ps.
std::string report(const simulate::PlanRequest& request, const simulate::Plan& plan);

}  // namespace capstan::launch::plan
