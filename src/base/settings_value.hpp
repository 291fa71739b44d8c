// settings_value.hpp -- parses the text of a setting, and describes the allowed values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/settings.hpp"

namespace capstan::settings {

using Parsed = std::variant<std::int64_t, double, bool, std::string>;

/// Parses `text`. Bytes and durations become int64 (bytes, milliseconds), choices become text. Returns
/// nullopt if the text is malformed, outside the limits, or not one of the choices.
std::optional<Parsed> parse(const Setting& setting, std::string_view text);

/// Parses `text` without checking the limits, for the defaults of the table.
std::optional<Parsed> parse_unlimited(const Setting& setting, std::string_view text);

/// Describes the values that `parse` accepts: "an integer of at least 1", "one of sgd, adagrad, adam".
std::string allowed(const Setting& setting);

std::vector<std::string> choices(const Setting& setting);

}  // namespace capstan::settings
