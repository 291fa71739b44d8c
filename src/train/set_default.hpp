// set_default.hpp -- fills in settings with the defaults of a program.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/settings.hpp"

namespace capstan::train {

/// Sets a setting unless a source has set it.
template <class Value>
void set_default(Settings& settings, std::string_view name, const Value& value) {
  if (!settings.given(name)) settings.set_from_program(name, fmt::format("{}", value));
}

}  // namespace capstan::train
