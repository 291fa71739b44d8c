// settings.hpp -- all settings of Capstan: one table, five sources, typed getters.
//
// A command-line flag overrides a CAPSTAN_* variable, which overrides a TOML file, which overrides the
// program, which overrides the default, regardless of the order of loading. A malformed value or an unknown
// name throws Error(invalid_argument) with the setting, its source, the value and the values that are
// allowed.
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

/// One row of the table.
struct Setting {
  std::string_view name;  // kebab-case; the flag is --name, the variable CAPSTAN_NAME
  std::string_view group;
  SettingKind kind = SettingKind::text;
  std::string_view initial;  // the default, as a user would write it; may lie outside the limits
  std::string_view help;
  std::string_view unit = {};
  std::string_view initial_means = {};  // shown instead of a default that needs an explanation
  double minimum = -std::numeric_limits<double>::infinity();  // in bytes or milliseconds
  double maximum = std::numeric_limits<double>::infinity();   // in bytes or milliseconds
  bool above_minimum = false;                                 // excludes the minimum itself
  std::string_view choices = {};                              // "auto|mapped|rma"
  bool list = false;  // comma-separated names; several words on the command line

  /// "CAPSTAN_PUSH_RING_BYTES" for push-ring-bytes.
  std::string variable() const;
};

/// The groups of settings of `capstan train PROGRAM`, apart from [runtime]; empty for an unknown program.
std::span<const std::string_view> groups_of(std::string_view program);

/// The source of a value. Later kinds override earlier ones.
struct Origin {
  enum class Kind : std::uint8_t { initial, program, file, environment, flag };
  Kind kind = Kind::initial;
  std::string file = {};
  int line = 0;

  /// "default", "program", "run.toml:3", "environment", "flag"
  std::string brief() const;
};

/// The settings of one run. A value type: copies are independent.
class Settings {
 public:
  /// The table of Capstan's settings.
  static std::span<const Setting> table();

  /// Sets every setting to its default. `table` must outlive this object and its copies.
  explicit Settings(std::span<const Setting> table = Settings::table());

  /// Sets a setting from a flag. `text` is its argument, or "true" or "false" for a flag without argument.
  void set_from_flag(std::string_view name, std::string_view text);

  /// Sets a setting from the program. `text` has the format of a flag's argument.
  void set_from_program(std::string_view name, std::string_view text);

  /// Resets a setting to its default if the program has set it.
  void drop_from_program(std::string_view name);

  /// Sets settings from the CAPSTAN_* variables of a null-terminated list, such as `environ`. Ignores
  /// _CONFIG, _TEST_*, _UCX_* and the variables of a job and of its agents; rejects other unknown ones.
  void load_environment(const char* const* variables);

  /// Sets settings from a TOML file. A `name = value` stands at the top, in the table of the setting's group,
  /// or in the table of a program that has the setting. `named_by` is the source of the path, for error
  /// messages ("--config"). Throws Error(not_found or permission_denied) if the file cannot be read.
  void load_file(const std::filesystem::path& path, std::string_view named_by = "");

  /// Getters abort the program if the name is not in the table or the setting has another kind.
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::uint64_t bytes(std::string_view name) const;
  std::chrono::milliseconds duration(std::string_view name) const;
  bool flag(std::string_view name) const;
  /// Returns a setting of kind text or choice.
  const std::string& text(std::string_view name) const;

  const Origin& origin(std::string_view name) const;
  /// Returns true if any source has set the value.
  bool given(std::string_view name) const { return origin(name).kind != Origin::Kind::initial; }

  /// Prints each setting with its name, value, default, unit, variable, origin and help (`capstan settings`).
  void print(std::ostream& out) const;
  /// Prints the table without the values of this run (docs/settings.md).
  void print_markdown(std::ostream& out) const;
  /// {"dim": 200, "model": "complex", "wait-timeout": "60s", ...}. Bytes are numbers, durations are text.
  std::string to_json() const;

 private:
  struct Value {
    std::variant<std::int64_t, double, bool, std::string> parsed;
    std::string text;  // as the source wrote it
    Origin origin;
  };

  std::size_t index(std::string_view name) const;
  const Value& value(std::string_view name, SettingKind kind) const;
  void set(const Setting& setting, std::string_view text, Origin origin);
  std::string shown(std::size_t i) const;

  std::span<const Setting> table_;
  std::vector<Value> values_;  // one for each row of the table
};

/// Returns the name of `known` that is nearest to the misspelled `given`, or "" if none is similar enough.
std::string nearest_name(std::string_view given, std::span<const std::string> known);

}  // namespace capstan
