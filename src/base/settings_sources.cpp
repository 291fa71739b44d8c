// settings_sources.cpp -- loads settings from the environment and from a TOML file.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>

#include "base/settings.hpp"
#include "base/unknown_setting.hpp"
#include "capstan/error.hpp"

namespace capstan {
namespace {

Error invalid(const std::string& message) { return Error(Code::invalid_argument, message); }

std::string read_text(const std::filesystem::path& path, std::string_view named_by) {
  const std::string file_name =
      named_by.empty() ? path.string() : fmt::format("{} {}", named_by, path.string());
  if (std::filesystem::is_directory(path))
    throw invalid(fmt::format("{}: found a directory, expected a TOML file", file_name));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const Code code = errno == EACCES ? Code::permission_denied : Code::not_found;
    throw Error(code, fmt::format("cannot open {}: {}", file_name, std::strerror(errno)));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// Returns the type that a setting of this kind has in a TOML file.
std::string_view toml_type(SettingKind kind) {
  switch (kind) {
    case SettingKind::integer:
      return "an integer";
    case SettingKind::real:
      return "a number";
    case SettingKind::bytes:
      return "an integer or a string such as \"8MiB\"";
    case SettingKind::duration:
      return "a string such as \"30s\"";
    case SettingKind::flag:
      return "true or false";
    case SettingKind::text:
    case SettingKind::choice:
      break;
  }
  return "a string";
}

/// Returns the node in the form of a command-line argument; nullopt if its type does not match the kind.
std::optional<std::string> as_text(const toml::node& node, SettingKind kind) {
  if (const auto* integer = node.as_integer()) {
    const bool fits = kind == SettingKind::integer || kind == SettingKind::real || kind == SettingKind::bytes;
    return fits ? std::optional(fmt::format("{}", integer->get())) : std::nullopt;
  }
  if (const auto* real = node.as_floating_point()) {
    return kind == SettingKind::real ? std::optional(fmt::format("{}", real->get())) : std::nullopt;
  }
  if (const auto* truth = node.as_boolean()) {
    return kind == SettingKind::flag ? std::optional<std::string>(truth->get() ? "true" : "false")
                                     : std::nullopt;
  }
  if (const auto* string = node.as_string()) {
    const bool fits = kind == SettingKind::text || kind == SettingKind::choice ||
                      kind == SettingKind::bytes || kind == SettingKind::duration;
    return fits ? std::optional(string->get()) : std::nullopt;
  }
  return std::nullopt;
}

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void Settings::load_environment(const char* const* variables) {
  for (; *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || !entry.starts_with(settings::kVariablePrefix)) continue;
    const std::string_view variable = entry.substr(0, equals);
    // UCX reads CAPSTAN_UCX_* itself, as UCX_* variables for Capstan alone.
    if (variable == "CAPSTAN_CONFIG" || variable == "CAPSTAN_JOB_TOKEN" || variable == "CAPSTAN_JOB_RUNS" ||
        variable == "CAPSTAN_AGENT" || variable == "CAPSTAN_AGENT_LINK" ||
        variable.starts_with("CAPSTAN_TESTS_") || variable.starts_with("CAPSTAN_UCX_"))
      continue;
    const auto found = std::find_if(table_.begin(), table_.end(),
                                    [&](const Setting& s) { return s.variable() == variable; });
    if (found == table_.end()) throw settings::unknown_variable(table_, variable);
    set(*found, entry.substr(equals + 1), {.kind = Origin::Kind::environment});
  }
}

void Settings::load_file(const std::filesystem::path& path, std::string_view named_by) {
  const std::string text = read_text(path, named_by);
  toml::table root;
  try {
    root = toml::parse(text, path.string());
  } catch (const toml::parse_error& error) {
    throw invalid(fmt::format("{}:{}: invalid TOML: {}", path.string(), error.source().begin.line,
                              error.description()));
  }

  std::map<std::string, int, std::less<>> seen;  // name -> line
  const auto take = [&](std::string_view key, const toml::node& node, std::string_view group) {
    const int line = static_cast<int>(node.source().begin.line);
    const std::string where = fmt::format("{}:{}", path.string(), line);
    const auto found =
        std::find_if(table_.begin(), table_.end(), [&](const Setting& s) { return s.name == key; });
    if (found == table_.end()) throw settings::unknown_key(table_, where, key);
    if (!group.empty() && found->group != group && !has(groups_of(group), found->group)) {
      throw invalid(fmt::format("{}: {} is in table [{}], expected [{}]", where, key, group, found->group));
    }
    if (const auto [first, fresh] = seen.emplace(key, line); !fresh) {
      throw invalid(fmt::format("{}: {} is already set in line {}", where, key, first->second));
    }
    const auto value = as_text(node, found->kind);
    if (!value)
      throw invalid(
          fmt::format("{}: {} must be {}, not {}", where, key, toml_type(found->kind), type_name(node)));
    set(*found, *value, {.kind = Origin::Kind::file, .file = path.string(), .line = line});
  };

  for (const auto& [key, node] : root) {
    const std::string name(key.str());
    const bool is_group = !groups_of(name).empty() ||
                          std::any_of(table_.begin(), table_.end(),
                                      [&](const Setting& setting) { return setting.group == name; });
    const toml::table* inside = node.as_table();
    if (!is_group || inside == nullptr) {
      take(name, node, "");
      continue;
    }
    for (const auto& [inner_key, inner] : *inside) take(inner_key.str(), inner, name);
  }
}

}  // namespace capstan
