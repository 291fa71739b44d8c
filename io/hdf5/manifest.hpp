// manifest.hpp -- manifest.json: the contents of a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// Reference from an increment to its base: a full checkpoint in the same directory.
struct Base {
  std::string checkpoint = {};     // "checkpoint-00000010"
  std::string manifest_xxh3 = {};  // of its manifest.json
};

struct Manifest {
  std::int64_t step = 0;
  std::optional<Base> base = {};  // set for an increment
  std::uint64_t master_bytes = 0;
  std::string master_xxh3 = {};
  std::vector<PartReport> parts = {};
  std::vector<VariableInfo> variables = {};           // by name; derived from the parts
  std::string user_state = {};                        // JSON text
  std::string settings = {};                          // JSON text of an object
  std::map<std::string, std::string> positions = {};  // JSON texts, by name
  std::map<std::string, std::int64_t> counters = {};
  std::string written_by = {};  // "0.1.0 (commit 1234567)"; set by read_manifest, ignored by to_json
};

/// Returns the parts in the order of their numbers. Throws Error(invalid_argument) unless there is exactly
/// one of each.
std::vector<PartReport> in_order(std::span<const PartReport> parts);

/// Returns the variables in `parts`. Throws Error(invalid_argument) that names the array unless the parts
/// hold each of its rows once and agree on its dtype, shape and optimizer.
std::vector<VariableInfo> variables_of(std::span<const PartReport> parts);

/// Throws Error(invalid_argument) unless the datasets lie within the file and do not overlap.
void check_extents(const PartReport& part);

/// Throws Error(invalid_argument) unless user_state and every position is JSON and settings is a JSON object.
void check_json(const Manifest& manifest);

/// Throws Error(invalid_argument) unless all variables have row numbers in an increment, and none in a full
/// checkpoint.
void check_base(const Manifest& manifest);

/// Returns the text of the file, which ends with a newline.
std::string to_json(const Manifest& manifest);

/// Reads `<directory>/manifest.json` and checks it and its checksum. Throws Error(data_loss) that names the
/// file and the fault.
Manifest read_manifest(const std::filesystem::path& directory);

/// Reads the checksum that is stored beside the manifest. Throws Error that names the file.
std::string manifest_checksum(const std::filesystem::path& directory);

/// Returns true if `directory` is the checkpoint that `base` refers to.
bool is_base(const std::filesystem::path& directory, const Base& base);

/// Returns the path of an increment's base, which has the suffix kReplaced if its step was saved again.
/// Throws Error(data_loss) if it is missing, or itself an increment.
std::filesystem::path find_base(const std::filesystem::path& increment, const Base& base);

/// Returns the base of an increment; nothing for a full checkpoint or a malformed manifest. Throws Error if
/// the manifest is unreadable.
std::optional<Base> base_of(const std::filesystem::path& directory);

}  // namespace capstan::io
