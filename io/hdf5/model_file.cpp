// model_file.cpp -- encodes and decodes the index of a model file, without HDF5.
#include "io/hdf5/model_file.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/json.hpp"
#include "base/name.hpp"
#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The tail: size and checksum of the index, 16 hexadecimal digits each, then the magic.
constexpr std::string_view kMagic("capstan-model\r\n\n", 16);
constexpr std::size_t kDigits = 16;
constexpr std::size_t kTailBytes = 2 * kDigits + kMagic.size();
constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{1} << 30;

Error damaged(const fs::path& file, std::string_view fault) {
  return Error(Code::data_loss, fmt::format("{}: {}", file.string(), fault));
}

struct Tail {
  std::uint64_t index_bytes = 0;
  std::string xxh3;
};

Tail read_tail(const FileDescriptor& from, const fs::path& file, std::uint64_t bytes) {
  std::string tail(kTailBytes, '\0');
  if (bytes >= kTailBytes) read_at(from, file, bytes - kTailBytes, tail.data(), tail.size());
  if (!tail.ends_with(kMagic)) {
    throw damaged(file, "not a model file from `capstan checkpoint export`, or truncated");
  }
  Tail found{0, tail.substr(kDigits, kDigits)};
  const auto [end, error] = std::from_chars(tail.data(), tail.data() + kDigits, found.index_bytes, 16);
  if (error != std::errc{} || end != tail.data() + kDigits || found.index_bytes > bytes - kTailBytes ||
      found.index_bytes > kMaxIndexBytes) {
    throw damaged(file, "damaged: its last bytes contain no valid size of its index");
  }
  return found;
}

std::uint64_t count_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned())
    throw Error(Code::invalid_argument,
                fmt::format("\"{}\" is {}, expected a non-negative integer", key, value.dump()));
  return value.get<std::uint64_t>();
}

DatasetReport array_from_json(const Json& json) {
  DatasetReport array{.variable = json.at("variable").get<std::string>(),
                      .component = json.at("which").get<std::string>()};
  const auto dtype = dtype_of_name(json.at("dtype").get<std::string>());
  if (!dtype) throw Error(Code::invalid_argument, "unknown dtype " + json.at("dtype").dump());
  array.dtype = *dtype;
  array.shape = json.at("shape").get<std::vector<std::uint64_t>>();
  check_name("variable", array.variable);
  check_component(array.component);
  check_shape(array.variable, array.shape, array.dtype);
  array.rows = array.shape[0];
  array.offset = count_at(json, "offset");
  array.xxh3 = json.at("xxh3").get<std::string>();
  return array;
}

ModelIndex index_from_json(const Json& json, std::uint64_t hdf5_bytes) {
  if (!json.is_object() || json.value("format", Json()) != kModelFormat) {
    throw Error(Code::invalid_argument, "not the index of a Capstan model");
  }
  if (const Json version = json.value("version", Json()); version != kModelVersion) {
    throw Error(Code::invalid_argument,
                fmt::format("format version {}, expected {}; export the model with this version of Capstan",
                            version.dump(), kModelVersion));
  }
  ModelIndex index{.step = json.at("step").get<std::int64_t>()};
  index.contents.bytes = count_at(json, "hdf5_bytes");
  if (index.contents.bytes != hdf5_bytes) {
    throw Error(Code::invalid_argument,
                fmt::format("{} bytes before its index, expected {}", hdf5_bytes, index.contents.bytes));
  }
  index.contents.metadata_xxh3 = json.at("metadata_xxh3").get<std::string>();
  for (const Json& array : json.at("arrays")) index.contents.datasets.push_back(array_from_json(array));
  check_extents(index.contents);
  index.user_state = json.value("user_state", Json()).dump();
  return index;
}

}  // namespace

std::string model_index_bytes(const ModelIndex& index) {
  Json arrays = Json::array();
  for (const DatasetReport& array : index.contents.datasets) {
    arrays.push_back({{"variable", array.variable},
                      {"which", array.component},
                      {"path", dataset_path(array.variable, array.component)},
                      {"dtype", to_string(array.dtype)},
                      {"shape", array.shape},
                      {"offset", array.offset},
                      {"xxh3", array.xxh3}});
  }
  const Json json{{"format", kModelFormat},
                  {"version", kModelVersion},
                  {"step", index.step},
                  {"hdf5_bytes", index.contents.bytes},
                  {"metadata_xxh3", index.contents.metadata_xxh3},
                  {"user_state", parse_json(index.user_state, "the user state", Code::data_loss)},
                  {"arrays", std::move(arrays)}};
  const std::string text = json.dump(1) + "\n";
  return text + fmt::format("{:016x}{}{}", text.size(), checksum_of(text), kMagic);
}

bool looks_like_model(const fs::path& file) noexcept {
  try {
    (void)read_tail(open_to_read(file), file, file_bytes(file));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

ModelIndex read_model_index(const FileDescriptor& from, const fs::path& file) {
  const std::uint64_t bytes = file_bytes(from, file);
  const Tail tail = read_tail(from, file, bytes);
  const std::uint64_t hdf5_bytes = bytes - kTailBytes - tail.index_bytes;
  std::string text(static_cast<std::size_t>(tail.index_bytes), '\0');
  read_at(from, file, hdf5_bytes, text.data(), text.size());
  if (checksum_of(text) != tail.xxh3) throw damaged(file, "damaged: the checksum of its index differs");
  try {
    return index_from_json(parse_json(text, "its index", Code::data_loss), hdf5_bytes);
  } catch (const nlohmann::json::exception& error) {
    throw damaged(file, fmt::format("its index is incomplete: {}", error.what()));
  } catch (const Error& error) {
    throw damaged(file, error.what());
  }
}

}  // namespace capstan::io
