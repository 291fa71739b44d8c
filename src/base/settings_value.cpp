// settings_value.cpp -- parsers for each kind of setting, and descriptions of the allowed values.
#include "base/settings_value.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace capstan::settings {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// A bare letter is a power of 1024, as in most HPC tools; kB, MB, GB, TB keep their SI meaning.
constexpr std::array<Unit, 19> kByteUnits{{{"", 1},
                                           {"B", 1},
                                           {"k", 0x1p10},
                                           {"K", 0x1p10},
                                           {"KiB", 0x1p10},
                                           {"kiB", 0x1p10},
                                           {"m", 0x1p20},
                                           {"M", 0x1p20},
                                           {"MiB", 0x1p20},
                                           {"g", 0x1p30},
                                           {"G", 0x1p30},
                                           {"GiB", 0x1p30},
                                           {"t", 0x1p40},
                                           {"T", 0x1p40},
                                           {"TiB", 0x1p40},
                                           {"kB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12}}};
constexpr std::array<Unit, 4> kTimeUnits{{{"ms", 1}, {"s", 1e3}, {"min", 60e3}, {"h", 3600e3}}};

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::optional<double> finite(std::string_view text) {
  const auto value = number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Parses a number with a unit: "1.5k" bytes is 1536. Returns nullopt if the result is not an integer.
std::optional<std::int64_t> with_unit(std::string_view text, std::span<const Unit> units) {
  const auto split = std::min(text.find_first_not_of("-.0123456789"), text.size());
  std::string_view suffix = text.substr(split);
  if (suffix.starts_with(' ')) suffix.remove_prefix(1);
  const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == suffix; });
  const auto count = finite(text.substr(0, split));
  if (unit == units.end() || !count) return std::nullopt;
  const double scaled = *count * unit->factor;
  const double rounded = std::round(scaled);
  // In double arithmetic 0.1 s is 100.00000000000001 ms. Beyond 2^53 a double cannot represent every integer.
  if (std::abs(scaled - rounded) > 1e-6 || std::abs(rounded) > 0x1p53) return std::nullopt;
  return static_cast<std::int64_t>(rounded);
}

std::optional<bool> truth(std::string_view text) {
  for (const std::string_view yes : {"true", "on", "yes", "1"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"false", "off", "no", "0"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

template <class T>
std::optional<Parsed> widen(const std::optional<T>& value) {
  return value ? std::optional<Parsed>(*value) : std::nullopt;
}

bool within_limits(const Setting& setting, const Parsed& parsed) {
  double value = 0;
  if (const auto* integer = std::get_if<std::int64_t>(&parsed)) {
    value = static_cast<double>(*integer);
  } else if (const auto* real = std::get_if<double>(&parsed)) {
    value = *real;
  } else {
    return true;
  }
  if (setting.above_minimum && value <= setting.minimum) return false;
  return value >= setting.minimum && value <= setting.maximum;
}

/// A limit in the form in which a user would write it: "1", "64KiB", "1ms".
std::string limit(const Setting& setting, double value) {
  if (setting.kind == SettingKind::duration) return fmt::format("{}ms", value);
  if (setting.kind != SettingKind::bytes) return fmt::format("{}", value);
  static constexpr std::array<std::string_view, 5> kNames{"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t power = 0;
  for (; power + 1 < kNames.size() && std::fmod(value, 1024) == 0 && value > 0; ++power) value /= 1024;
  return fmt::format("{}{}", value, kNames[power]);
}

std::string_view kind_in_words(SettingKind kind) {
  switch (kind) {
    case SettingKind::integer:
      return "an integer";
    case SettingKind::real:
      return "a number";
    case SettingKind::bytes:
      return "a size such as 4096, 64k, 8MiB or 1GB";
    case SettingKind::duration:
      return "a time with its unit, such as 500ms, 30s, 5min or 1h";
    case SettingKind::flag:
      return "true or false (or on, off, yes, no, 1, 0)";
    case SettingKind::text:
    case SettingKind::choice:
      break;
  }
  return "text";
}

}  // namespace

std::vector<std::string> choices(const Setting& setting) {
  std::vector<std::string> result;
  std::string_view rest = setting.choices;
  while (!rest.empty()) {
    const auto bar = std::min(rest.find('|'), rest.size());
    result.emplace_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return result;
}

std::optional<Parsed> parse_unlimited(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case SettingKind::integer:
      return widen(number<std::int64_t>(text));
    case SettingKind::real:
      return widen(finite(text));
    case SettingKind::bytes:
      return widen(with_unit(text, kByteUnits));
    case SettingKind::duration:
      return widen(with_unit(text, kTimeUnits));
    case SettingKind::flag:
      return widen(truth(text));
    case SettingKind::text:
    case SettingKind::choice:
      break;
  }
  return Parsed(std::string(text));
}

std::optional<Parsed> parse(const Setting& setting, std::string_view text) {
  if (setting.kind == SettingKind::choice) {
    const auto known = choices(setting);
    if (std::find(known.begin(), known.end(), text) == known.end()) return std::nullopt;
  }
  std::optional<Parsed> parsed = parse_unlimited(setting, text);
  if (!parsed || !within_limits(setting, *parsed)) return std::nullopt;
  return parsed;
}

std::string allowed(const Setting& setting) {
  if (setting.kind == SettingKind::choice) return fmt::format("one of {}", fmt::join(choices(setting), ", "));
  std::string result(kind_in_words(setting.kind));
  const bool low = std::isfinite(setting.minimum);
  const bool high = std::isfinite(setting.maximum);
  if (setting.kind == SettingKind::bytes || setting.kind == SettingKind::duration) {
    if (low || high) result += ",";
  }
  if (low)
    result += fmt::format(" {} {}", setting.above_minimum ? "above" : "of at least",
                          limit(setting, setting.minimum));
  if (high) result += fmt::format("{} at most {}", low ? " and" : " of", limit(setting, setting.maximum));
  return result;
}

}  // namespace capstan::settings
