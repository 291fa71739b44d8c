// failure.hpp -- reports on standard error why the program exits.
#pragma once

#include <string_view>

#include "capstan/error.hpp"

namespace capstan::launch {

/// Rank 0 prints the message and a hint. Any other rank prints only rank-local failures, then sleeps 0.5 s so
/// that rank 0 can report before the launcher ends the job. Returns the exit code.
int report_failure(Code code, std::string_view message);

}  // namespace capstan::launch
