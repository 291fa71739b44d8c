// settings_print.cpp -- prints settings to a terminal, as Markdown and as JSON.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/settings.hpp"
#include "base/settings_value.hpp"

namespace capstan {
namespace {

std::string default_shown(const Setting& setting) {
  if (!setting.initial_means.empty()) return std::string(setting.initial_means);
  return std::string(setting.initial);
}

/// "64 ranks"; "8MiB" stays as it is, because bytes and times include their unit.
std::string with_unit(const Setting& setting, const std::string& value) {
  return setting.unit.empty() ? value : fmt::format("{} {}", value, setting.unit);
}

std::string unit_shown(const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::bytes:
      return "bytes";
    case SettingKind::duration:
      return "time";
    default:
      return setting.unit.empty() ? "-" : std::string(setting.unit);
  }
}

/// Escapes '|', which would end the cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

}  // namespace

std::string Settings::shown(std::size_t i) const {
  const bool by_default = values_[i].origin.kind == Origin::Kind::initial;
  return by_default ? default_shown(table_[i]) : with_unit(table_[i], values_[i].text);
}

void Settings::print(std::ostream& out) const {
  std::string_view group;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const Setting& setting = table_[i];
    if (setting.group != group) {
      fmt::print(out, "{}[{}]\n", group.empty() ? "" : "\n", setting.group);
      group = setting.group;
    }
    fmt::print(out, "{} = {}  (from: {})\n", setting.name, shown(i), values_[i].origin.brief());
    fmt::print(out, "    {}\n", setting.help);
    fmt::print(out, "    default {}; unit {}; {}; {}\n", default_shown(setting), unit_shown(setting),
               settings::allowed(setting), setting.variable());
  }
}

void Settings::print_markdown(std::ostream& out) const {
  std::string_view group;
  for (const Setting& setting : table_) {
    if (setting.group != group) {
      group = setting.group;
      fmt::print(out, "{}## {}\n\n", &setting == table_.data() ? "" : "\n", group);
      fmt::print(out, "| setting | default | unit | allowed | variable | meaning |\n");
      fmt::print(out, "|---|---|---|---|---|---|\n");
    }
    fmt::print(out, "| `{}` | {} | {} | {} | `{}` | {} |\n", setting.name, cell(default_shown(setting)),
               unit_shown(setting), cell(settings::allowed(setting)), setting.variable(), cell(setting.help));
  }
}

std::string Settings::to_json() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const Value& value = values_[i];
    auto& slot = json[std::string(table_[i].name)];
    if (table_[i].kind == SettingKind::duration) {
      slot = value.text;
    } else {
      std::visit([&](const auto& parsed) { slot = parsed; }, value.parsed);
    }
  }
  // A path may contain bytes that are not UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace capstan
