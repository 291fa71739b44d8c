// time_left.hpp -- how long a job of Slurm may go on.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// What squeue prints for %L: "1-02:03:04", "02:03:04", "03:04", "UNLIMITED" (seconds::max). Nothing for what
/// is no time: "INVALID", "NOT_SET".
std::optional<std::chrono::seconds> parse_time_left(const std::string& text);

Finding check_time_left(const Request& request);
/// `source`: where that is from.
Finding judge_time_left(const std::string& job, std::optional<std::chrono::seconds> left,
                        const std::string& source);

}  // namespace capstan::launch::doctor
