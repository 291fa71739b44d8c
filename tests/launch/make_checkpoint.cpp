// make_checkpoint.cpp -- writes a checkpoint as a job does, from arrays that a test script describes.
//
//   make_checkpoint DIR < description.json
//
// {"step": 12, "parts": 2, "user_state": ..., "positions": {...}, "counters": {...}, "settings": {...},
//  "arrays": [{"variable": "w", "which": "value", "dtype": "float32", "shape": [5, 2], "optimizer": "SGD",
//              "file": "PATH"}],
//  "base": "checkpoint-00000010", "changed": {"w": [3, 4]}}
//
// PATH is a file with the raw bytes of the array. "base" and "changed" describe an increment. Prints the
// directory of the checkpoint.
//
// Rows are divided evenly; shard i has 1000 + i steps.
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "io/checkpoint_sample.hpp"
#include "io/hdf5/layout.hpp"
#include "io/increment_sample.hpp"

namespace capstan::io {
namespace {

using Json = nlohmann::json;

std::vector<char> bytes_of(const std::filesystem::path& file) {
  std::vector<char> bytes(std::filesystem::file_size(file));
  std::ifstream(file, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

SampleArray array_from(const Json& json) {
  return {json.at("variable"), json.at("which"), dtype_of_name(json.at("dtype").get<std::string>()).value(),
          json.at("shape"), bytes_of(json.at("file").get<std::string>())};
}

std::vector<PartArray> rows_of_part(const Json& description, const std::vector<SampleArray>& arrays,
                                    int index, int count) {
  std::vector<PartArray> rows;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto [first, length] = cut(arrays[i].shape[0], index, count);
    const std::uint64_t row = row_bytes(arrays[i].shape, arrays[i].dtype);
    PartArray part{arrays[i].variable, arrays[i].component, arrays[i].dtype, arrays[i].shape, first, length};
    static const char nothing = 0;
    part.data = arrays[i].bytes.empty() ? &nothing : arrays[i].bytes.data() + first * row;
    if (part.component == kValue) {
      part.optimizer = description.at("arrays")[i].at("optimizer");
      part.steps = 1000 + index;
    }
    rows.push_back(std::move(part));
  }
  return rows;
}

void make(const std::filesystem::path& directory, const Json& description) {
  std::vector<SampleArray> arrays;
  for (const Json& array : description.at("arrays")) arrays.push_back(array_from(array));
  CheckpointDirectory to(directory, 0);
  const std::int64_t step = description.at("step");
  const int parts = description.at("parts");
  const auto unfinished = to.begin(step);
  std::vector<PartReport> reports;
  const bool increment = description.contains("base");
  for (int i = 0; i < parts; ++i) {
    auto rows = rows_of_part(description, arrays, i, parts);
    std::vector<std::vector<char>> memory;
    if (increment) rows = only_changed(rows, description.at("changed").get<Changes>(), memory);
    reports.push_back(write_part(unfinished / part_file_name(i, parts), rows));
  }
  PublishOptions options{description.at("user_state").dump(), description.at("settings").dump()};
  for (const auto& [name, position] : description.at("positions").items())
    options.positions[name] = position.dump();
  options.counters = description.at("counters").get<std::map<std::string, std::int64_t>>();
  if (increment) {
    const auto base = description.at("base").get<std::string>();
    options.base = Base{base, manifest_checksum(directory / base)};
  }
  std::cout << to.publish(step, reports, options).string() << "\n";
}

}  // namespace
}  // namespace capstan::io

int main(int, char** argv) {
  capstan::io::make(argv[1], nlohmann::json::parse(std::cin));
  return 0;
}
