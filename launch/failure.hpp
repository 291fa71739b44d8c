// failure.hpp -- says on standard error why the program ends.
#pragma once

#include <string_view>

#include "capstan/error.hpp"

namespace capstan::launch {

/// Rank 0 says it with a hint; another rank only what it alone can know, and later. Returns the exit code.
int report_failure(Code code, std::string_view message);

}  // namespace capstan::launch
