// table_options.hpp -- options of a dynamic table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "capstan/optimizers.hpp"
#include "capstan/variable_options.hpp"

namespace capstan {

/// What a lookup returns for a key that is not in the table. Sent over the wire: add at the end, never
/// renumber.
enum class MissingKeys : std::uint8_t {
  zeros = 0,
  /// The table's default row: zeros until DynamicTable::set_default_row.
  default_row = 1,
  /// The row with which the key would be added: the initializer's values. The key is not added.
  initial = 2,
  /// Throws Error(not_found), which names a missing key.
  error = 3,
};

struct TableOptions {
  /// Applied by the ps to pushes. None: as in VariableOptions.
  std::optional<Optimizer> optimizer = {};
  MissingKeys missing = MissingKeys::zeros;
  /// Number of keys for which each ps reserves addresses, divided by the number of ps, with a margin for
  /// hashes that are not evenly distributed. Memory is allocated when keys are added. Further keys are not
  /// added.
  std::uint64_t max_keys = std::uint64_t{1} << 26;
  /// Marks the table for training; pushes are accepted in any case.
  bool trainable = true;
};

constexpr std::string_view to_string(MissingKeys missing) noexcept {
  switch (missing) {
    case MissingKeys::zeros:
      return "zeros";
    case MissingKeys::default_row:
      return "default_row";
    case MissingKeys::initial:
      return "initial";
    case MissingKeys::error:
      return "error";
  }
  return "unknown";
}

}  // namespace capstan
