// manifest.hpp -- manifest.json: what a checkpoint consists of.
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

/// The whole checkpoint under an increment, in the same directory.
struct Base {
  std::string checkpoint = {};     // "checkpoint-00000010"
  std::string manifest_xxh3 = {};  // of its manifest.json
};

struct Manifest {
  std::int64_t step = 0;
  std::optional<Base> base = {};  // of an increment
  std::uint64_t master_bytes = 0;
  std::string master_xxh3 = {};
  std::vector<PartReport> parts = {};
  std::vector<VariableInfo> variables = {};           // by name; follows from the parts
  std::string user_state = {};                        // JSON text
  std::string settings = {};                          // JSON text of an object
  std::map<std::string, std::string> positions = {};  // JSON texts, by name
  std::map<std::string, std::int64_t> counters = {};
  std::string written_by = {};  // "0.1.0 (commit 1234567)"; made by to_json, read by read_manifest
};

/// The parts in the order of their numbers, all of them there. Throws Error invalid_argument.
std::vector<PartReport> in_order(std::span<const PartReport> parts);

/// The variables that `parts` hold. Throws Error invalid_argument that names the array unless the parts hold
/// each of its rows once and agree on its dtype, shape and optimizer.
std::vector<VariableInfo> variables_of(std::span<const PartReport> parts);

/// The datasets of a file lie inside it and apart from each other. Throws Error invalid_argument.
void check_extents(const PartReport& part);

/// Throws Error invalid_argument when user_state, settings or a position is not JSON, or settings is no
/// object.
void check_json(const Manifest& manifest);

/// An increment has a base and the numbers of its rows, a whole checkpoint neither. Throws Error
/// invalid_argument.
void check_base(const Manifest& manifest);

/// Text of the file; ends with a newline.
std::string to_json(const Manifest& manifest);

/// Reads and checks `<folder>/manifest.json` with its checksum. Throws Error data_loss naming the file and
/// the fault.
Manifest read_manifest(const std::filesystem::path& folder);

/// The checksum that is written beside the manifest. Throws Error that names the file.
std::string manifest_checksum(const std::filesystem::path& folder);

/// The folder is the one that the increment was made on.
bool is_base(const std::filesystem::path& folder, const Base& base);

/// The folder of an increment's base, which may have been replaced by another one of its name and lie beside
/// that. Throws Error(data_loss) when it is missing, or an increment itself.
std::filesystem::path find_base(const std::filesystem::path& increment, const Base& base);

/// Nothing of a whole checkpoint, or of one that is not understood. Throws Error when it cannot be read.
std::optional<Base> base_of(const std::filesystem::path& folder);

}  // namespace capstan::io
