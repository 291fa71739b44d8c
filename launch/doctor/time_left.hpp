// time_left.hpp -- checks the time left in the Slurm job.
#pragma once

#include <string>

#include "base/time_left.hpp"
#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

Finding check_time_left(const Request& request);
/// Returns the finding for the time left in the Slurm job with the ID `job`.
Finding judge_time_left(const std::string& job, const TimeLeft& left);

}  // namespace capstan::launch::doctor
