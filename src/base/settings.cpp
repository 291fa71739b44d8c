// settings.cpp -- precedence of sources, getters, and errors for invalid values.
#include "base/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>

#include "base/assert.hpp"
#include "base/settings_value.hpp"
#include "base/unknown_setting.hpp"
#include "capstan/error.hpp"

namespace capstan {
namespace {

/// Longer durations are clamped to this, so that now + duration can be represented.
constexpr std::chrono::milliseconds kLongestDuration = std::chrono::hours(24 * 365 * 100);

/// Returns the source of a value in the user's terms, such as "flag --ps" or "run.toml:3".
std::string source(const Setting& setting, const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::flag:
      return fmt::format("flag --{}", setting.name);
    case Origin::Kind::environment:
      return fmt::format("environment variable {}", setting.variable());
    case Origin::Kind::file:
      return fmt::format("{}:{}", origin.file, origin.line);
    case Origin::Kind::program:
      return "ClusterOptions";
    case Origin::Kind::initial:
      break;
  }
  return "default";
}

}  // namespace

std::string Setting::variable() const {
  std::string result(settings::kVariablePrefix);
  for (const char c : name)
    result += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string Origin::brief() const {
  switch (kind) {
    case Kind::flag:
      return "flag";
    case Kind::environment:
      return "environment";
    case Kind::file:
      return fmt::format("{}:{}", file, line);
    case Kind::program:
      return "program";
    case Kind::initial:
      break;
  }
  return "default";
}

Settings::Settings(std::span<const Setting> table) : table_(table) {
  values_.reserve(table.size());
  for (const Setting& setting : table) {
    auto parsed = settings::parse_unlimited(setting, setting.initial);
    CAPSTAN_ASSERT(parsed);
    values_.push_back({std::move(*parsed), std::string(setting.initial), {}});
  }
}

void Settings::set_from_flag(std::string_view name, std::string_view text) {
  for (const Setting& setting : table_) {
    if (setting.name == name) return set(setting, text, {.kind = Origin::Kind::flag});
  }
  throw settings::unknown_flag(table_, name);
}

void Settings::set_from_program(std::string_view name, std::string_view text) {
  set(table_[index(name)], text, {.kind = Origin::Kind::program});
}

void Settings::drop_from_program(std::string_view name) {
  const std::size_t i = index(name);
  if (values_[i].origin.kind == Origin::Kind::program) values_[i] = Settings(table_).values_[i];
}

void Settings::set(const Setting& setting, std::string_view text, Origin origin) {
  auto parsed = settings::parse(setting, text);
  if (!parsed) {
    throw Error(Code::invalid_argument, fmt::format("{}: {} must be {}, not \"{}\"", source(setting, origin),
                                                    setting.name, settings::allowed(setting), text));
  }
  Value& value = values_[index(setting.name)];
  if (origin.kind < value.origin.kind) return;
  value = {std::move(*parsed), std::string(text), std::move(origin)};
}

std::size_t Settings::index(std::string_view name) const {
  const auto found = std::find_if(table_.begin(), table_.end(),
                                  [&](const Setting& setting) { return setting.name == name; });
  CAPSTAN_ASSERT(found != table_.end() && "the table has no setting of this name");
  return static_cast<std::size_t>(found - table_.begin());
}

const Settings::Value& Settings::value(std::string_view name, SettingKind kind) const {
  const std::size_t i = index(name);
  CAPSTAN_ASSERT(table_[i].kind == kind && "the setting is of another kind than the getter");
  return values_[i];
}

std::int64_t Settings::integer(std::string_view name) const {
  return std::get<std::int64_t>(value(name, SettingKind::integer).parsed);
}

double Settings::real(std::string_view name) const {
  return std::get<double>(value(name, SettingKind::real).parsed);
}

std::uint64_t Settings::bytes(std::string_view name) const {
  return static_cast<std::uint64_t>(std::get<std::int64_t>(value(name, SettingKind::bytes).parsed));
}

std::chrono::milliseconds Settings::duration(std::string_view name) const {
  const std::chrono::milliseconds parsed(std::get<std::int64_t>(value(name, SettingKind::duration).parsed));
  return std::min(parsed, kLongestDuration);
}

bool Settings::flag(std::string_view name) const {
  return std::get<bool>(value(name, SettingKind::flag).parsed);
}

const std::string& Settings::text(std::string_view name) const {
  const std::size_t i = index(name);
  const bool is_text = table_[i].kind == SettingKind::text || table_[i].kind == SettingKind::choice;
  CAPSTAN_ASSERT(is_text && "the setting is of another kind than the getter");
  return values_[i].text;
}

const Origin& Settings::origin(std::string_view name) const { return values_[index(name)].origin; }

}  // namespace capstan
