// cluster_options.hpp -- converts ClusterOptions to Settings.
#pragma once

#include "base/settings.hpp"
#include "capstan/cluster.hpp"

namespace capstan {

/// Returns settings in which the program has set every field that differs from its default. Throws
/// Error(invalid_argument) for a value that the table of settings does not allow.
Settings settings_of(const ClusterOptions& options);

}  // namespace capstan
