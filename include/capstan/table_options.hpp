// table_options.hpp -- options of a dynamic table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "capstan/dtype.hpp"
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

/// What a ps does with a push to a new key while its part of max_keys is in use. Pushes count as uses of a
/// key, lookups do not. Sent over the wire: add at the end, never renumber.
enum class WhenFull : std::uint8_t {
  /// Drops it, and counts it in TableStatistics::refused.
  refuse = 0,
  /// Replaces a key without recent pushes: of 16 keys, the one whose last push is longest ago.
  evict_least_recent = 1,
  /// Replaces a key with few pushes: of 16 keys, the one with the fewest. A key's count is at most 127, and
  /// is halved for every 8 n keys pushed since the key's last push, if the ps can hold n keys.
  evict_least_frequent = 2,
};

struct TableOptions {
  /// Applied by the ps to pushes. None: as in VariableOptions.
  std::optional<Optimizer> optimizer = {};
  MissingKeys missing = MissingKeys::zeros;
  /// Capacity of the table in keys. Each ps reserves addresses for an equal share of them, with a margin for
  /// hashes that are not evenly distributed. Memory is allocated when keys are added.
  std::uint64_t max_keys = std::uint64_t{1} << 26;
  WhenFull when_full = WhenFull::refuse;
  /// Number of occurrences in recent pushes, 1 to 15, at which a push adds a key. Its earlier gradients go to
  /// the default row if `missing` is default_row, and are dropped otherwise. Counts are approximate:
  /// about 1 % of the keys are added too early, and a key is forgotten after about max_keys gradients of
  /// other keys that are not in the table. insert() and assign() add keys at once.
  std::uint32_t admit_after = 1;
  /// Probability, above 0 and at most 1, with which a push adds a key that is not in the table. Other
  /// gradients are treated as with `admit_after`, of which this is the alternative. The draw depends on the
  /// key and the number of the push only: a closure that runs again after a failure adds the same keys.
  double admit_probability = 1;
  /// Age, in pushes to the table, above which a key is evicted; 0: never. A key's age is the number of pushes
  /// that its ps has received since the last one to the key; a step of a synchronous group counts as one
  /// push. Each push examines some of the rows, so a key may be up to a fifth older, and older still if a ps
  /// has more than 800 rows per push of the age. A restore sets all ages to 0.
  std::uint64_t evict_after = 0;
  /// Marks the table for training; pushes are accepted in any case.
  bool trainable = true;
  /// As in VariableOptions. A synchronous group adds the keys of a step when the step ends.
  std::optional<UpdateGroup> group = {};
  /// As in VariableOptions.
  bool stochastic_rounding = false;
  bool int8_rows = false;
  /// As in VariableOptions.
  std::optional<DType> communication_dtype = {};
  std::optional<bool> int8_lookups = {};
};

constexpr std::string_view to_string(WhenFull when_full) noexcept {
  switch (when_full) {
    case WhenFull::refuse:
      return "refuse";
    case WhenFull::evict_least_recent:
      return "evict_least_recent";
    case WhenFull::evict_least_frequent:
      return "evict_least_frequent";
  }
  return "unknown";
}

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
