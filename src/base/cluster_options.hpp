// cluster_options.hpp -- ClusterOptions as settings.
#pragma once

#include "base/settings.hpp"
#include "capstan/cluster.hpp"

namespace capstan {

/// Settings in which the fields that differ from their defaults are given by the program. Throws
/// Error(invalid_argument) for a value that the table does not allow.
Settings settings_of(const ClusterOptions& options);

}  // namespace capstan
