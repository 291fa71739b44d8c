// cluster_options.hpp -- settings of a program that joins a cluster: ClusterOptions and their overrides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/settings.hpp"
#include "capstan/cluster.hpp"

namespace capstan {

/// Returns settings in which the program has set every field that differs from its default. Throws
/// Error(invalid_argument) for a value that the table of settings does not allow.
Settings settings_of(const ClusterOptions& options);

/// Returns settings_of(options), overridden by the file of CAPSTAN_CONFIG and by the CAPSTAN_* variables of
/// this process. Throws Error like Settings::load_environment and Settings::load_file.
Settings collected_settings(const ClusterOptions& options);

/// Sets a setting from an argument of a program, `--capstan-NAME=VALUE` or `--capstan-NAME`. Returns false,
/// and sets nothing, for any other argument. Throws Error(invalid_argument).
bool set_from_argument(Settings& settings, std::string_view argument);

/// Returns `--NAME=VALUE` for each field that the program has set in `options`, unless another source of
/// `settings` overrides it.
std::vector<std::string> flags_of(const ClusterOptions& options, const Settings& settings);

}  // namespace capstan
