// run.hpp -- runs `capstan serve`.
#pragma once

#include "launch/serve/request.hpp"

namespace capstan::launch::serve {

/// Serves until SIGTERM or SIGINT. Returns the exit code. Throws Error: unimplemented in a build without
/// cpp-httplib; the errors of open_model() and of HttpServer.
int run(const Request& request);

}  // namespace capstan::launch::serve
