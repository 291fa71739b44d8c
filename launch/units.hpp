// units.hpp -- the one format of counts, sizes, rates and times in all output.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace capstan::launch {

/// Three significant digits and an SI prefix: "950", "21.4 k", "4.40 M", "1.25 G". A unit may follow:
/// "4.40 M examples".
std::string short_count(double count);
/// Powers of 1000: "950 B", "21.4 kB", "67.1 MB".
std::string size_text(double bytes);
/// "4.40 M examples/s"; "67.1 MB/s" for the unit "B".
std::string rate_text(double per_second, std::string_view unit);

/// "3.2 s", "4:05 min", "2:30 h".
std::string short_time(std::chrono::milliseconds time);
/// Like short_time() from 1 s on; shorter times: "12.0 ms", "1.28 us".
std::string seconds_text(double seconds);

}  // namespace capstan::launch
