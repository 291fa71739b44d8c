// run.hpp -- runs `capstan evaluate kge`, `capstan predict kge` and `capstan similar` in one process.
#pragma once

#include "launch/kge/request.hpp"

namespace capstan::launch::kge_model {

/// Returns the exit code. Throws Error, such as not_found with similar names for an unknown name.
int run(const Request& request);

}  // namespace capstan::launch::kge_model
