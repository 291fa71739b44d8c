// lookup.hpp -- parses lookups, and formats rows as JSON or bytes: docs/serving.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/model.hpp"

namespace capstan::launch::serve {

/// Largest answer before it is formatted. JSON takes about three times as much.
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{256} << 20;

/// The rows of `variable` that a client asks for: by id or key, or by name.
struct Lookup {
  std::string variable = {};
  std::vector<std::int64_t> ids = {};
  std::vector<std::string> names = {};
};

// Both throw Error: invalid_argument for a malformed request; resource_exhausted for more than `max_ids`.

/// Parses {"variable": "...", "ids": [...]}, or "names" in place of "ids".
Lookup parse_lookup(std::string_view json, std::size_t max_ids);
/// Parses little-endian int64.
Lookup parse_binary_lookup(std::string variable, std::string_view ids, std::size_t max_ids);

/// Rows in the order of the ids.
struct FoundRows {
  Shape shape = {};
  DType dtype = DType::float32;            // float16 and bfloat16 are widened to float32
  std::string bytes = {};                  // little-endian
  bool is_table = false;                   // a dynamic table
  std::vector<std::uint8_t> present = {};  // of a dynamic table: whether it has the key
};

/// Throws Error: not_found, out_of_range, data_loss; resource_exhausted above kMaxAnswerBytes.
FoundRows find_rows(const Model& model, const std::string& variable, std::span<const std::int64_t> ids);

/// {"variable": ..., "dtype": ..., "shape": [...], "rows": [[...], ...]}; for a dynamic table also "present".
/// A number that is not finite is null.
std::string to_json(const std::string& variable, const FoundRows& rows);

}  // namespace capstan::launch::serve
