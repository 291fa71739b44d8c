// transports.hpp -- `capstan settings --transports`: the route from every rank to every ps, found by
// connecting.
#pragma once

#include "base/settings.hpp"

namespace capstan {

/// Runs on every rank. Without a launcher, it connects to a second process on this host and predicts the
/// route to another host. Returns the exit code. After printing, throws Error for a route that would stop a
/// run.
int run_show_transports(const Settings& settings);

}  // namespace capstan
