// settings_refusal.hpp -- what a user is told who names a setting that does not exist.
#pragma once

#include <span>
#include <string_view>

#include "base/settings.hpp"
#include "capstan/error.hpp"

namespace capstan::settings {

inline constexpr std::string_view kVariablePrefix = "CAPSTAN_";

/// Error(invalid_argument) with the nearest name that exists, or with where to look them up.
Error unknown_flag(std::span<const Setting> table, std::string_view name);
Error unknown_variable(std::span<const Setting> table, std::string_view variable);
/// `where` is "run.toml:3".
Error unknown_key(std::span<const Setting> table, std::string_view where, std::string_view key);

}  // namespace capstan::settings
