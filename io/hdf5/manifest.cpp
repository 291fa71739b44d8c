// manifest.cpp -- encodes, decodes and validates manifest.json.
#include "io/hdf5/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.hpp"
#include "capstan/error.hpp"
#include "capstan/partitioners.hpp"
#include "capstan/version.hpp"
#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

using Json = nlohmann::json;

/// The program's values are nested up to two levels below the root, in "user_state" and "positions".
constexpr std::size_t kMaxValueDepth = kMaxJsonDepth - 2;

Json value_of(const std::string& text, const std::string& source) {
  return parse_json(text, source, Code::invalid_argument, kMaxValueDepth);
}

Json user_state_of(const Manifest& manifest) {
  return value_of(manifest.user_state, "the user state of a checkpoint");
}

Json settings_of(const Manifest& manifest) {
  Json settings = value_of(manifest.settings, "the settings of a checkpoint");
  if (settings.is_object()) return settings;
  throw Error(Code::invalid_argument, "the settings of a checkpoint are JSON, expected a JSON object");
}

Json positions_of(const Manifest& manifest) {
  Json positions = Json::object();
  for (const auto& [name, position] : manifest.positions) {
    positions[name] = value_of(position, fmt::format("the position of \"{}\"", name));
  }
  return positions;
}

/// First rows of the shards of each array, over all parts, in ascending order.
using ShardStarts = std::map<std::pair<std::string, std::string>, std::vector<std::uint64_t>>;

ShardStarts starts_of(const std::vector<PartReport>& parts) {
  ShardStarts starts;
  for (const PartReport& part : parts) {
    for (const DatasetReport& dataset : part.datasets) {
      starts[{dataset.variable, dataset.component}].push_back(dataset.first_row);
    }
  }
  for (auto& [array, rows] : starts) std::sort(rows.begin(), rows.end());
  return starts;
}

Json dataset_to_json(const DatasetReport& dataset, const ShardStarts& starts) {
  const auto& rows = starts.at({dataset.variable, dataset.component});
  const auto shard = std::lower_bound(rows.begin(), rows.end(), dataset.first_row) - rows.begin();
  Json json{{"variable", dataset.variable},
            {"shard", shard_name(dataset.variable, static_cast<std::uint64_t>(shard), rows.size())},
            {"which", dataset.component},
            {"path", dataset_path(dataset.variable, dataset.component)},
            {"dtype", to_string(dataset.dtype)},
            {"shape", dataset.shape},
            {"first_row", dataset.first_row},
            {"rows", dataset.rows},
            {"offset", dataset.offset},
            {"xxh3", dataset.xxh3}};
  if (dataset.changed) json["changed"] = *dataset.changed;
  if (dataset.component == kValue) json["steps"] = dataset.steps;
  if (dataset.learning_rate) json["learning_rate"] = *dataset.learning_rate;
  return json;
}

Json part_to_json(const PartReport& part, const ShardStarts& starts) {
  Json datasets = Json::array();
  for (const DatasetReport& dataset : part.datasets) datasets.push_back(dataset_to_json(dataset, starts));
  return {{"file", part.file},
          {"bytes", part.bytes},
          {"metadata_xxh3", part.metadata_xxh3},
          {"datasets", std::move(datasets)}};
}

/// Converts "adam(learning_rate=0.1, nesterov=true)" to {"name": "adam", "learning_rate": 0.1, "nesterov":
/// true}. The numbers in the description are exact.
Json optimizer_to_json(const std::string& description) {
  const auto open = description.find('(');
  Json json{{"name", description.substr(0, open)}};
  if (open == std::string::npos) return json;
  std::string_view rest = std::string_view(description).substr(open + 1);
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find_first_of(",)"));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::string_view entry = one.substr(std::min(one.size(), one.find_first_not_of(' ')));
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(entry.substr(0, equals));
    std::string text(entry.substr(equals + 1));
    if (name == "boundaries" || name == "values") {  // "1;0.5" in the description
      std::replace(text.begin(), text.end(), ';', ',');
      text = "[" + text + "]";
    }
    const Json value = try_parse_json(text);
    json[name] = value.is_discarded() ? Json(text) : value;  // infinity is not JSON
  }
  return json;
}

Json variable_to_json(const VariableInfo& variable) {
  Json slots = Json::object();
  for (const SlotInfo& slot : variable.slots) {
    slots[slot.name] = {{"dtype", to_string(slot.dtype)}, {"shape", slot.shape}};
  }
  return {{"dtype", to_string(variable.dtype)},
          {"shape", variable.shape},
          {"optimizer", variable.optimizer},
          {"hyperparameters", optimizer_to_json(variable.optimizer)},
          {"steps", variable.steps},
          {"slots", std::move(slots)}};
}

/// Rejects -1 and 1.5, which nlohmann's get<T> silently converts to unsigned numbers.
std::uint64_t unsigned_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned())
    throw Error(Code::invalid_argument,
                fmt::format("\"{}\" is {}, expected a non-negative integer", key, value.dump()));
  return value.get<std::uint64_t>();
}

std::int64_t integer_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_integer())
    throw Error(Code::invalid_argument, fmt::format("\"{}\" is {}, expected an integer", key, value.dump()));
  return value.get<std::int64_t>();
}

double number_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number())
    throw Error(Code::invalid_argument, fmt::format("\"{}\" is {}, expected a number", key, value.dump()));
  return value.get<double>();
}

DatasetReport dataset_from_json(const Json& json, const Json& variables) {
  DatasetReport dataset{.variable = json.at("variable").get<std::string>(),
                        .component = json.at("which").get<std::string>()};
  const auto dtype = dtype_of_name(json.at("dtype").get<std::string>());
  if (!dtype) throw Error(Code::invalid_argument, "unknown dtype " + json.at("dtype").dump());
  dataset.dtype = *dtype;
  for (const Json& dimension : json.at("shape")) {
    if (!dimension.is_number_unsigned()) {
      throw Error(Code::invalid_argument,
                  fmt::format("\"shape\" is {}, expected non-negative integers", json.at("shape").dump()));
    }
    dataset.shape.push_back(dimension.get<std::uint64_t>());
  }
  check_shape(dataset.variable, dataset.shape, dataset.dtype);
  dataset.first_row = unsigned_at(json, "first_row");
  dataset.rows = unsigned_at(json, "rows");
  if (json.contains("changed")) dataset.changed = unsigned_at(json, "changed");
  dataset.offset = unsigned_at(json, "offset");
  dataset.xxh3 = json.at("xxh3").get<std::string>();
  if (dataset.component == kValue) {
    dataset.steps = integer_at(json, "steps");
    if (json.contains("learning_rate")) dataset.learning_rate = number_at(json, "learning_rate");
    dataset.optimizer = variables.at(dataset.variable).at("optimizer").get<std::string>();
  }
  return dataset;
}

PartReport part_from_json(const Json& json, const Json& variables) {
  PartReport part{.file = json.at("file").get<std::string>(),
                  .bytes = unsigned_at(json, "bytes"),
                  .metadata_xxh3 = json.at("metadata_xxh3").get<std::string>()};
  for (const Json& dataset : json.at("datasets"))
    part.datasets.push_back(dataset_from_json(dataset, variables));
  check_extents(part);
  return part;
}

Base base_from_json(const Json& json) {
  Base base{json.at("checkpoint").get<std::string>(), json.at("manifest_xxh3").get<std::string>()};
  if (!step_of_name(base.checkpoint))
    throw Error(Code::invalid_argument,
                fmt::format("its base is \"{}\", expected the name of a checkpoint", base.checkpoint));
  return base;
}

Manifest manifest_from_json(const Json& json) {
  Manifest manifest;
  manifest.step = integer_at(json, "step");
  if (json.at("version") == kIncrementVersion) manifest.base = base_from_json(json.at("base"));
  manifest.master_bytes = unsigned_at(json.at("master"), "bytes");
  manifest.master_xxh3 = json.at("master").at("xxh3").get<std::string>();
  std::vector<PartReport> parts;
  for (const Json& part : json.at("parts")) parts.push_back(part_from_json(part, json.at("variables")));
  manifest.parts = in_order(parts);
  manifest.variables = variables_of(manifest.parts);
  check_base(manifest);
  manifest.user_state = json.at("user_state").dump();
  manifest.settings = json.at("settings").dump();
  const Json positions = json.value("positions", Json::object());  // older manifests have none
  for (const auto& [name, position] : positions.items()) manifest.positions.emplace(name, position.dump());
  const Json counters = json.value("counters", Json::object());
  for (const auto& [name, value] : counters.items())
    manifest.counters.emplace(name, integer_at(counters, name.c_str()));
  if (json.contains("written_by")) {
    const Json& by = json.at("written_by");
    manifest.written_by = fmt::format("{} (commit {})", by.at("capstan").get<std::string>(),
                                      by.at("commit").get<std::string>());
  }
  return manifest;
}

/// Checks format and version first: a newer version may encode the rest differently.
Json parse_checked(const std::string& text, const std::filesystem::path& directory) {
  Json json = parse_json(text, "its text", Code::data_loss);
  if (!json.is_object() || json.value("format", Json()) != kFormatName) {
    throw Error(Code::invalid_argument, "not the manifest of a Capstan checkpoint");
  }
  const Json version = json.value("version", Json());
  if (version != kFormatVersion && version != kIncrementVersion) {
    throw Error(Code::invalid_argument,
                fmt::format("format version {}, expected {} or {}; read it with the version of Capstan that "
                            "wrote it, or a newer one",
                            version.dump(), kFormatVersion, kIncrementVersion));
  }
  const std::string stored = read_whole_file(directory / kManifestSumFile);
  if (stored != checksum_of(text) + "\n") {
    throw Error(Code::invalid_argument,
                fmt::format("damaged: differs from the checksum in {}", kManifestSumFile));
  }
  return json;
}

}  // namespace

void check_extents(const PartReport& part) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;
  for (const DatasetReport& dataset : part.datasets) {
    if (dataset.rows > dataset.shape[0] || dataset.stored() > dataset.rows || dataset.offset > part.bytes ||
        data_bytes(dataset) > part.bytes - dataset.offset) {
      throw Error(Code::invalid_argument, fmt::format("{} ends before its dataset {}", part.file,
                                                      dataset_path(dataset.variable, dataset.component)));
    }
    extents.emplace_back(dataset.offset, dataset.offset + data_bytes(dataset));
  }
  std::sort(extents.begin(), extents.end());
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].first < extents[i - 1].second)
      throw Error(Code::invalid_argument, part.file + " has overlapping datasets");
  }
}

void check_json(const Manifest& manifest) {
  (void)user_state_of(manifest);
  (void)settings_of(manifest);
  (void)positions_of(manifest);
}

void check_base(const Manifest& manifest) {
  for (const VariableInfo& variable : manifest.variables) {
    if (variable.changed.has_value() == manifest.base.has_value()) continue;
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\" has {}", variable.name,
                            manifest.base ? "no row numbers, expected them in an increment"
                                          : "row numbers of an increment, expected a base"));
  }
}

std::string to_json(const Manifest& manifest) {
  Json parts = Json::array();
  const ShardStarts starts = starts_of(manifest.parts);
  for (const PartReport& part : manifest.parts) parts.push_back(part_to_json(part, starts));
  Json variables = Json::object();
  for (const VariableInfo& variable : manifest.variables)
    variables[variable.name] = variable_to_json(variable);
  Json json{
      {"format", kFormatName},
      {"version", manifest.base ? kIncrementVersion : kFormatVersion},
      {"step", manifest.step},
      {"master", {{"file", kMasterFile}, {"bytes", manifest.master_bytes}, {"xxh3", manifest.master_xxh3}}},
      {"parts", std::move(parts)},
      {"variables", std::move(variables)},
      {"user_state", user_state_of(manifest)},
      {"positions", positions_of(manifest)},
      {"counters", manifest.counters},
      {"written_by", {{"capstan", CAPSTAN_VERSION_STRING}, {"commit", CAPSTAN_COMMIT}}},
      {"settings", settings_of(manifest)}};
  if (manifest.base)
    json["base"] = {{"checkpoint", manifest.base->checkpoint},
                    {"manifest_xxh3", manifest.base->manifest_xxh3}};
  return json.dump(1) + "\n";
}

std::string manifest_checksum(const std::filesystem::path& directory) {
  const std::string text = read_whole_file(directory / kManifestSumFile);
  return text.substr(0, text.find('\n'));
}

bool is_base(const std::filesystem::path& directory, const Base& base) {
  const std::string name = directory.filename().string();
  std::error_code error;
  return (name == base.checkpoint || name == base.checkpoint + std::string(kReplaced)) &&
         std::filesystem::exists(directory / kManifestSumFile, error) &&
         manifest_checksum(directory) == base.manifest_xxh3;
}

std::filesystem::path find_base(const std::filesystem::path& increment, const Base& base) {
  const auto clean = canonical_path(increment);
  const auto refused = [&](std::string_view why) {
    return Error(Code::data_loss,
                 fmt::format("{} is an increment on {}, which {}", clean.string(), base.checkpoint, why));
  };
  bool exists = false;
  for (const std::string_view suffix : {std::string_view(), kReplaced}) {
    auto directory = clean.parent_path() / base.checkpoint;
    directory += suffix;
    std::error_code error;
    exists = exists || std::filesystem::exists(directory, error);
    if (!is_base(directory, base)) continue;
    if (base_of(directory)) throw refused("is itself an increment, expected a full checkpoint");
    return directory;
  }
  throw refused(exists ? "was replaced: the checksum of its manifest differs" : "is missing");
}

std::optional<Base> base_of(const std::filesystem::path& directory) {
  const auto file = directory / kManifestFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  const Json json = try_parse_json(read_whole_file(file));
  if (!json.is_object() || !json.contains("base")) return std::nullopt;
  try {
    return base_from_json(json.at("base"));
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // read_manifest reports the fault
  }
}

Manifest read_manifest(const std::filesystem::path& directory) {
  const auto file = directory / kManifestFile;
  if (!std::filesystem::exists(file)) throw Error(Code::data_loss, file.string() + " is missing");
  const std::string text = read_whole_file(file);
  try {
    return manifest_from_json(parse_checked(text, directory));
  } catch (const nlohmann::json::exception& error) {
    throw Error(Code::data_loss, fmt::format("{} is incomplete: {}", file.string(), error.what()));
  } catch (const Error& error) {
    if (error.code() == Code::resource_exhausted || error.code() == Code::permission_denied) throw;
    throw Error(Code::data_loss, fmt::format("{}: {}", file.string(), error.what()));
  }
}

}  // namespace capstan::io
