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

/// Who runs a check.
enum class Scope : std::uint8_t {
  process,   // every rank, for itself
  host,      // one rank of each host
  job,       // rank 0 alone
  together,  // all ranks, which need each other; see job_checks.hpp
};

struct Check {
  std::string_view name;
  Scope scope = Scope::process;
  std::string_view asks;  ///< one line for --list
  std::chrono::seconds time_limit{5};
  std::function<Finding(const Request&)> run = {};  ///< none where ranks need each other
};

/// All, in the order in which they are shown.
std::span<const Check> checks();

/// Throws Error(invalid_argument), with the nearest name, for a name in `only` that is no check.
void require_checks(const std::vector<std::string>& only);
bool wanted(std::string_view check, const std::vector<std::string>& only);

/// --list
std::string list_text();

/// What can be told without other ranks. A check that has no answer within its time limit is given up: it
/// goes on in its thread, and what it finds is dropped. One that throws has failed.
std::vector<Finding> run_local_checks(const Request& request);

/// The same for one check; any thread.
Finding run_check(const Check& check, const Request& request);

}  // namespace capstan::launch::doctor
