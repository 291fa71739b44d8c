// settings.hpp -- every setting of Capstan: one table, five sources, typed getters.
//
// A command-line flag beats a CAPSTAN_* variable, which beats a TOML file, which beats what the program sets,
// which beats the default, in whatever order they are loaded. What is malformed or unknown is refused by an
// Error(invalid_argument) that names the setting, where it came from, what was given and what is allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace capstan {

enum class SettingKind : std::uint8_t { integer, real, bytes, duration, text, flag, choice };

/// One line of the table.
struct Setting {
  std::string_view name;  // kebab-case; the flag is --name, the variable CAPSTAN_NAME
  std::string_view group;
  SettingKind kind = SettingKind::text;
  std::string_view initial;  // the default, written as a user would write it; may lie outside the limits
  std::string_view help;
  std::string_view unit = {};
  std::string_view initial_means = {};  // shown in place of a default that says nothing by itself
  double minimum = -std::numeric_limits<double>::infinity();  // bytes in bytes, durations in milliseconds
  double maximum = std::numeric_limits<double>::infinity();
  bool above_minimum = false;     // the minimum itself is not allowed
  std::string_view choices = {};  // "auto|mapped|rma"
  bool list = false;              // of names, with commas between them; words of the command line

  /// "CAPSTAN_PUSH_RING_BYTES" for push-ring-bytes.
  std::string variable() const;
};

/// The groups of settings that `capstan train PROGRAM` has besides [runtime]; empty where there is no such
/// program.
std::span<const std::string_view> groups_of(std::string_view program);

/// Where a value was given. Later ones beat earlier ones.
struct Origin {
  enum class Kind : std::uint8_t { initial, program, file, environment, flag };
  Kind kind = Kind::initial;
  std::string file = {};
  int line = 0;

  /// "default", "program", "run.toml:3", "environment", "flag"
  std::string brief() const;
};

/// The settings of one run. A value: copy it, keep two, there is no other copy behind it.
class Settings {
 public:
  /// The settings that Capstan has.
  static std::span<const Setting> table();

  /// All at their defaults. `table` must outlive this object and its copies.
  explicit Settings(std::span<const Setting> table = Settings::table());

  /// `text` as it stood on the command line; "true" or "false" for a flag without value.
  void set_from_flag(std::string_view name, std::string_view text);

  /// `text` as for a flag.
  void set_from_program(std::string_view name, std::string_view text);

  /// Returns a setting to its default if the program has set it.
  void drop_from_program(std::string_view name);

  /// Takes every CAPSTAN_* variable of a null-terminated list, such as `environ`. CAPSTAN_CONFIG and
  /// CAPSTAN_TEST_* are left alone; any other that is no setting is refused.
  void load_environment(const char* const* variables);

  /// Takes a TOML file: `name = value`, at the top, in the table of the setting's group, or in that of a
  /// program that has the setting. `named_by` says in
  /// an error who asked for the file ("--config"). Throws Error(not_found, permission_denied) if it cannot be
  /// read.
  void load_file(const std::filesystem::path& path, std::string_view named_by = "");

  /// A getter of another kind than the setting's, or a name that is not in the table, is a bug and stops the
  /// program.
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::uint64_t bytes(std::string_view name) const;
  std::chrono::milliseconds duration(std::string_view name) const;
  bool flag(std::string_view name) const;
  /// Also for a choice.
  const std::string& text(std::string_view name) const;

  const Origin& origin(std::string_view name) const;
  /// Somebody asked for this value; it is not the default.
  bool given(std::string_view name) const { return origin(name).kind != Origin::Kind::initial; }

  /// Every setting: name, value, default, unit, variable, origin, help. What `capstan settings` shows.
  void print(std::ostream& out) const;
  /// The table alone, without this run's values: docs/settings.md.
  void print_markdown(std::ostream& out) const;
  /// {"dim": 200, "model": "complex", "wait-timeout": "60s", ...}. Bytes are numbers, durations text.
  std::string to_json() const;

 private:
  struct Value {
    std::variant<std::int64_t, double, bool, std::string> parsed;
    std::string text;  // as given
    Origin origin;
  };

  std::size_t index(std::string_view name) const;
  const Value& value(std::string_view name, SettingKind kind) const;
  void set(const Setting& setting, std::string_view text, Origin origin);
  std::string shown(std::size_t i) const;

  std::span<const Setting> table_;
  std::vector<Value> values_;  // one for each line of the table
};

/// The nearest of `known` to a misspelt `given`, or "" if none is near enough to be meant.
std::string nearest_name(std::string_view given, std::span<const std::string> known);

}  // namespace capstan
