// checks.hpp -- the table of checks.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// Ranks that run a check.
enum class Scope : std::uint8_t {
  process,     // every rank
  host,        // one rank of each host
  job,         // rank 0
  collective,  // all ranks together; see job_checks.hpp
};

struct Check {
  std::string_view name;
  Scope scope = Scope::process;
  std::string_view summary;  ///< one line for --list
  std::chrono::seconds time_limit{5};
  std::function<Finding(const Request&)> run = {};  ///< empty for collective checks
};

/// All checks, in the order of the report.
std::span<const Check> checks();

/// Throws Error(invalid_argument) with the nearest name if `only` has an unknown check.
void require_checks(const std::vector<std::string>& only);
/// Returns true if `only` is empty or names `check`.
bool is_selected(std::string_view check, const std::vector<std::string>& only);

/// Output of --list.
std::string list_text();

/// Runs the checks that need no other rank. A check that exceeds its time limit fails; it continues in its
/// thread, and its result is discarded. A check that throws fails with the message of the exception.
std::vector<Finding> run_local_checks(const Request& request);

/// Runs one check with the same rules; any thread may call it.
Finding run_check(const Check& check, const Request& request);

}  // namespace capstan::launch::doctor
