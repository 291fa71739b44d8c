// transports.hpp -- `capstan settings --transports`: which way every rank takes to every ps, found by
// connecting.
#pragma once

#include "base/settings.hpp"

namespace capstan {

/// Runs on every rank. Alone, it connects to a second process on this host, and says what can be expected of
/// another host. Returns the exit code; throws Error, when it has shown the ways, for one that would stop a
/// run.
int run_show_transports(const Settings& settings);

}  // namespace capstan
