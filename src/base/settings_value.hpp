// settings_value.hpp -- from the text of a setting to its value, and what the table allows.
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

/// Bytes and durations come out as int64 (bytes, milliseconds), choices as text. Empty if the text is
/// malformed, outside the limits or none of the choices.
std::optional<Parsed> parse(const Setting& setting, std::string_view text);

/// The same without the limits, for the default of the table.
std::optional<Parsed> parse_unlimited(const Setting& setting, std::string_view text);

/// What `parse` takes, in words: "a whole number of at least 1", "one of sgd, adagrad, adam".
std::string allowed(const Setting& setting);

std::vector<std::string> choices(const Setting& setting);

}  // namespace capstan::settings
