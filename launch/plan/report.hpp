// report.hpp -- the output of `capstan plan`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "simulate/plan.hpp"

namespace capstan::launch::plan {

/// Formats the recommended number of ps, the predicted step, the bounds of a step, longest first, and the
/// other numbers of ps.
std::string report(const simulate::PlanRequest& request, const simulate::Plan& plan);

/// The same as an object: times in seconds, sizes in bytes. `others` are the other numbers of ps, each like
/// the outer object.
nlohmann::json report_json(const simulate::PlanRequest& request, const simulate::Plan& plan);

}  // namespace capstan::launch::plan
