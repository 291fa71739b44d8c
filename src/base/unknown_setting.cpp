// unknown_setting.cpp -- finds the nearest name by edit distance, and suggests it in the error.
#include "base/unknown_setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>
#include <vector>

namespace capstan {
namespace {

/// Lowercases `name` and replaces '_' by '-', so that neither counts as a difference.
std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name)
    result += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char letter : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (letter != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

const Setting* nearest_setting(std::span<const Setting> table, std::string_view given) {
  std::vector<std::string> names;
  for (const Setting& setting : table) names.emplace_back(setting.name);
  const std::string nearest = nearest_name(given, names);
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Setting& s) { return s.name == nearest; });
  return found == table.end() ? nullptr : &*found;
}

Error unknown(const std::string& what, const std::string& suggestion) {
  const std::string hint =
      suggestion.empty() ? "run `capstan settings` for a list" : fmt::format("did you mean {}?", suggestion);
  return Error(Code::invalid_argument, what + "; " + hint);
}

}  // namespace

std::string nearest_name(std::string_view given, std::span<const std::string> known) {
  const std::string wanted = folded(given);
  std::string best;
  // Names within two edits, or one edit per three letters, count as misspellings.
  std::size_t best_distance = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const std::string& name : known) {
    const std::size_t d = distance(wanted, folded(name));
    if (d < best_distance && d < name.size()) {
      best = name;
      best_distance = d;
    }
  }
  return best;
}

namespace settings {

Error unknown_flag(std::span<const Setting> table, std::string_view name) {
  const Setting* near = nearest_setting(table, name);
  return unknown(fmt::format("flag --{}: there is no such option", name),
                 near ? fmt::format("--{}", near->name) : "");
}

Error unknown_variable(std::span<const Setting> table, std::string_view variable) {
  const Setting* near = nearest_setting(table, variable.substr(kVariablePrefix.size()));
  return unknown(fmt::format("environment variable {}: unknown setting", variable),
                 near ? near->variable() : "");
}

Error unknown_key(std::span<const Setting> table, std::string_view where, std::string_view key) {
  const Setting* near = nearest_setting(table, key);
  return unknown(fmt::format("{}: unknown setting \"{}\"", where, key), near ? std::string(near->name) : "");
}

}  // namespace settings
}  // namespace capstan
