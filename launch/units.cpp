// units.cpp -- rounds first, so that "1000 k" and "60:00 min" never appear.
#include "launch/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace capstan::launch {
namespace {

constexpr std::array<std::string_view, 7> kPrefixes{"", "k", "M", "G", "T", "P", "E"};

struct Scaled {
  std::string number;
  std::string_view prefix;
};

/// Three significant digits; a number below 1000 keeps no zeros behind the point.
Scaled scaled(double value) {
  if (!std::isfinite(value)) return {fmt::format("{}", value), ""};
  if (std::abs(value) < 999.5) return {fmt::format("{:.3g}", value), ""};
  std::size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const int decimals = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return {fmt::format("{:.{}f}", value, decimals), kPrefixes[prefix]};
}

}  // namespace

std::string short_count(double count) {
  const Scaled text = scaled(count);
  return text.prefix.empty() ? text.number : fmt::format("{} {}", text.number, text.prefix);
}

std::string size_text(double bytes) {
  const Scaled text = scaled(bytes);
  return fmt::format("{} {}B", text.number, text.prefix);
}

std::string rate_text(double per_second, std::string_view unit) {
  if (unit == "B") return size_text(per_second) + "/s";
  return fmt::format("{} {}/s", short_count(per_second), unit);
}

std::string short_time(std::chrono::milliseconds time) {
  const auto tenths = (time.count() + 50) / 100;
  if (tenths < 600) return fmt::format("{}.{} s", tenths / 10, tenths % 10);
  const auto seconds = (time.count() + 500) / 1000;
  if (seconds < 3600) return fmt::format("{}:{:02} min", seconds / 60, seconds % 60);
  const auto minutes = (seconds + 30) / 60;
  return fmt::format("{}:{:02} h", minutes / 60, minutes % 60);
}

std::string seconds_text(double seconds) {
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  return short_time(std::chrono::milliseconds(std::llround(std::min(seconds, 1e9) * 1e3)));
}

}  // namespace capstan::launch
