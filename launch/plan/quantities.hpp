// quantities.hpp -- bandwidths and short times on the command line.
#pragma once

#include <string>
#include <string_view>

namespace capstan::launch::plan {

/// Returns bytes/s for a number with a unit of bits or bytes per second: "100Gb/s", "12.5 GB/s". Throws
/// Error(invalid_argument), which names `option`.
double parse_bandwidth(std::string_view option, const std::string& text);

/// Returns seconds for a number with a unit: "5ms", "2.5 us", "1s". Throws Error(invalid_argument), which
/// names `option`.
double parse_time(std::string_view option, const std::string& text);

/// Returns bytes for a number with a unit: "64GB", "32 GiB". Throws Error(invalid_argument), which names
/// `option`.
double parse_size(std::string_view option, const std::string& text);

}  // namespace capstan::launch::plan
