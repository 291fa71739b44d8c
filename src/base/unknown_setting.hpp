// unknown_setting.hpp -- errors for names of settings that do not exist.
#pragma once

#include <span>
#include <string_view>

#include "base/settings.hpp"
#include "capstan/error.hpp"

namespace capstan::settings {

inline constexpr std::string_view kVariablePrefix = "CAPSTAN_";

/// Returns Error(invalid_argument) that suggests the nearest existing name, or a command that lists all.
Error unknown_flag(std::span<const Setting> table, std::string_view name);
Error unknown_variable(std::span<const Setting> table, std::string_view variable);
/// `where` is the position of the key in the file ("run.toml:3").
Error unknown_key(std::span<const Setting> table, std::string_view where, std::string_view key);

}  // namespace capstan::settings
