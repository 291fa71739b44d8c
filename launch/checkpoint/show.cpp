// show.cpp -- `capstan checkpoint show`: prints the content of one checkpoint.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "capstan/partitioners.hpp"
#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/hdf5/table_parts.hpp"
#include "launch/checkpoint/byte_progress.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/norms.hpp"
#include "launch/checkpoint/output.hpp"
#include "launch/units.hpp"

namespace capstan::launch::checkpoint {
namespace {

using Json = nlohmann::json;

struct Shown {
  io::ArrayInfo array;
  std::optional<Norms> norms;
};

Norms norms_of(const io::CheckpointReader& reader, const io::ArrayInfo& array,
               const io::ProgressCallback& progress) {
  Norms norms;
  io::ArrayStream stream(reader, array);
  io::read_array(stream, /*widen=*/false, progress,
                 [&](std::string_view piece) { add(norms, array.dtype, piece); });
  return norms;
}

struct Table {
  std::uint64_t parts = 0;
  std::uint64_t keys = 0;
};

/// Returns the dynamic tables of the checkpoint by name.
std::map<std::string, Table> tables_of(const io::CheckpointReader& reader) {
  std::map<std::string, Table> tables;
  for (const io::VariableInfo& variable : reader.variables()) {
    if (!io::is_table_part(variable)) continue;
    Table& table = tables[io::table_of_part(variable.name)];
    ++table.parts;
    table.keys += io::count_keys(reader, variable);
  }
  return tables;
}

Row row_of(const Shown& shown, const io::VariableInfo& variable) {
  const bool value = shown.array.component == io::kValue;
  Row row{value ? variable.name : "  " + shown.array.component, std::string(to_string(shown.array.dtype)),
          shape_text(shown.array.shape), size_text(static_cast<double>(shown.array.bytes()))};
  if (shown.norms) {
    const Norms& norms = *shown.norms;
    const bool any = norms.finite > 0;
    row.insert(row.end(), {any ? number_text(norms.l2()) : "-", any ? number_text(norms.minimum) : "-",
                           any ? number_text(norms.maximum) : "-", fmt::format("{}", norms.nan),
                           fmt::format("{}", norms.infinite)});
  }
  row.insert(row.end(), {value ? fmt::format("{}", variable.shards.size()) : "",
                         value ? fmt::format("{}", variable.steps) : "", value ? variable.optimizer : ""});
  return row;
}

int version_of(const io::CheckpointReader& reader) {
  return reader.base() == nullptr ? io::kFormatVersion : io::kIncrementVersion;
}

/// "rows that changed since checkpoint-00000010: 12 of 101 of "w", 3 of 53 of "b""
std::string changes_text(const io::CheckpointReader& reader) {
  std::string text = fmt::format("rows that changed since {}:", reader.manifest().base->checkpoint);
  const char* separator = " ";
  for (const io::VariableInfo& variable : reader.variables()) {
    text += fmt::format("{}{} of {} of \"{}\"", std::exchange(separator, ", "), variable.changed.value_or(0),
                        variable.shape.at(0), variable.name);
  }
  return text;
}

std::string head(const io::CheckpointReader& reader, const std::vector<Shown>& all,
                 const std::map<std::string, Table>& tables) {
  std::string text;
  const auto line = [&](std::string_view label, std::string_view value) {
    text += fmt::format("{:<12}{}\n", label, value);
  };
  std::uint64_t bytes = 0;
  for (const Shown& shown : all) bytes += shown.array.bytes();
  line("checkpoint", reader.directory().string());
  line("format", fmt::format("{} version {}", io::kFormatName, version_of(reader)));
  if (reader.base() != nullptr) line("increment", changes_text(reader));
  if (!reader.written_by().empty()) line("written by", "capstan " + reader.written_by());
  line("step", fmt::format("{}", reader.step()));
  line("holds", fmt::format("{}, {} of arrays in {}", count_text(reader.variables().size(), "variable"),
                            size_text(static_cast<double>(bytes)),
                            count_text(reader.manifest().parts.size(), "part")));
  for (const auto& [name, table] : tables)
    line("table",
         fmt::format("{}: {} in {}", name, count_text(table.keys, "key"), count_text(table.parts, "part")));
  line("user state", reader.user_state());
  for (const auto& [name, value] : reader.counters()) line("counter", fmt::format("{}: {}", name, value));
  for (const auto& [name, position] : reader.positions())
    line("position", fmt::format("{}: {}", name, position));
  return text;
}

Json parse(const std::string& text) { return parse_json(text, "the manifest", Code::data_loss); }

std::string settings_text(const io::CheckpointReader& reader) {
  std::vector<std::string> words;
  const Json settings = parse(reader.settings());
  for (const auto& [name, value] : settings.items()) words.push_back(name + "=" + value.dump());
  return words.empty() ? "" : "\nsettings\n" + wrapped(words, "  ");
}

std::string as_text(const io::CheckpointReader& reader, const std::vector<Shown>& all,
                    const std::map<std::string, Table>& tables, bool norms) {
  Row header{"variable", "dtype", "shape", ">bytes"};
  if (norms) header.insert(header.end(), {">L2", ">min", ">max", ">NaN", ">inf"});
  header.insert(header.end(), {">shards", ">steps", "optimizer"});
  std::vector<Row> rows;
  for (const Shown& shown : all) rows.push_back(row_of(shown, reader.variable(shown.array.variable)));
  return head(reader, all, tables) + (rows.empty() ? "" : "\n" + table(header, rows)) + settings_text(reader);
}

Json array_json(const Shown& shown) {
  Json json{
      {"dtype", to_string(shown.array.dtype)}, {"shape", shown.array.shape}, {"bytes", shown.array.bytes()}};
  if (!shown.norms) return json;
  const Norms& norms = *shown.norms;
  const bool any = norms.finite > 0;
  json["norms"] = {{"l2", any ? Json(norms.l2()) : Json()},
                   {"min", any ? Json(norms.minimum) : Json()},
                   {"max", any ? Json(norms.maximum) : Json()},
                   {"nan", norms.nan},
                   {"inf", norms.infinite}};
  return json;
}

Json as_json(const io::CheckpointReader& reader, const std::vector<Shown>& all,
             const std::map<std::string, Table>& tables) {
  Json variables = Json::object();
  for (const Shown& shown : all) {
    const io::VariableInfo& variable = reader.variable(shown.array.variable);
    if (shown.array.component != io::kValue) {
      variables[variable.name]["slots"][shown.array.component] = array_json(shown);
      continue;
    }
    Json json = array_json(shown);
    json["optimizer"] = variable.optimizer;
    json["steps"] = variable.steps;
    json["slots"] = Json::object();
    json["shards"] = Json::array();
    for (const io::ShardSteps& shard : variable.shards) {
      json["shards"].push_back(
          {{"name", shard_name(variable.name, json["shards"].size(), variable.shards.size())},
           {"first_row", shard.first_row},
           {"rows", shard.rows},
           {"steps", shard.steps}});
      if (shard.learning_rate) json["shards"].back()["learning_rate"] = *shard.learning_rate;
    }
    variables[variable.name] = std::move(json);
  }
  Json positions = Json::object();
  for (const auto& [name, position] : reader.positions()) positions[name] = parse(position);
  Json of_tables = Json::object();
  for (const auto& [name, table] : tables) of_tables[name] = {{"keys", table.keys}, {"parts", table.parts}};
  return {{"path", reader.directory().string()},
          {"format", io::kFormatName},
          {"version", version_of(reader)},
          {"base", reader.base() == nullptr ? Json() : Json(reader.manifest().base->checkpoint)},
          {"written_by", reader.written_by()},
          {"step", reader.step()},
          {"parts", reader.manifest().parts.size()},
          {"variables", std::move(variables)},
          {"tables", std::move(of_tables)},
          {"user_state", parse(reader.user_state())},
          {"positions", std::move(positions)},
          {"counters", reader.counters()},
          {"settings", parse(reader.settings())}};
}

}  // namespace

int show(const Request& request) {
  const io::CheckpointReader reader(find_checkpoint(request.from));
  const auto arrays = io::arrays_of(reader.variables(), /*with_slots=*/true);
  const auto tables = tables_of(reader);
  std::vector<Shown> all;
  {
    ByteProgress progress("read", io::bytes_of(arrays));
    for (const io::ArrayInfo& array : arrays) {
      Shown shown{array, std::nullopt};
      if (request.norms) shown.norms = norms_of(reader, array, progress.callback());
      all.push_back(std::move(shown));
    }
  }
  if (request.json) {
    print_json(as_json(reader, all, tables));
  } else {
    print(as_text(reader, all, tables, request.norms));
  }
  return 0;
}

}  // namespace capstan::launch::checkpoint
