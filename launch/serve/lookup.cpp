// lookup.cpp -- rows are formatted without a JSON tree, which would take many times their memory.
#include "launch/serve/lookup.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "capstan/dtype.hpp"
#include "capstan/error.hpp"

namespace capstan::launch::serve {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are sent as they are in memory");

constexpr std::size_t kDepth = 16;  // of the JSON of a request

void check_count(std::size_t count, std::size_t max_ids) {
  if (count <= max_ids) return;
  throw Error(Code::resource_exhausted, fmt::format("found {} ids, expected at most {}", count, max_ids));
}

std::size_t elements_of_row(const Shape& shape) {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>()));
}

template <class T, class To>
void look_up(const Model& model, const std::string& variable, std::span<const std::int64_t> ids,
             FoundRows& found) {
  const auto array = model.lookup<T>(variable, ids);
  found.dtype = dtype_of<To>;
  if constexpr (std::is_same_v<T, To> && !std::is_same_v<T, bool>) {
    found.bytes.assign(reinterpret_cast<const char*>(array.values.data()), array.values.size() * sizeof(T));
  } else {
    found.bytes.reserve(array.values.size() * sizeof(To));
    for (const auto value : array.values) {
      const To converted = static_cast<To>(value);
      found.bytes.append(reinterpret_cast<const char*>(&converted), sizeof converted);
    }
  }
}

template <class T>
void append_number(const char* at, fmt::memory_buffer& out) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) {
      out.append(std::string_view("null"));
      return;
    }
  }
  fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}"), value);
}

/// Appends values as nested lists of `shape`.
template <class T>
const char* append_lists(const char* at, std::span<const std::int64_t> shape, fmt::memory_buffer& out) {
  if (shape.empty()) {
    append_number<T>(at, out);
    return at + sizeof(T);
  }
  out.push_back('[');
  for (std::int64_t i = 0; i < shape.front(); ++i) {
    if (i > 0) out.push_back(',');
    at = append_lists<T>(at, shape.subspan(1), out);
  }
  out.push_back(']');
  return at;
}

}  // namespace

Lookup parse_lookup(std::string_view json, std::size_t max_ids) {
  const auto request = parse_json(json, "the body", Code::invalid_argument, kDepth);
  const auto malformed = [](const std::string& what) {
    return Error(
        Code::invalid_argument,
        what + ", expected {\"variable\": \"NAME\", \"ids\": [...]}, or \"names\" in place of \"ids\"");
  };
  if (!request.is_object()) throw malformed("the body is no object");
  for (const auto& [name, value] : request.items()) {
    if (name != "variable" && name != "ids" && name != "names")
      throw malformed("there is no member " + printable(name));
  }
  Lookup lookup;
  if (!request.contains("variable") || !request["variable"].is_string())
    throw malformed("\"variable\" is missing or no text");
  lookup.variable = request["variable"].get<std::string>();
  if (request.contains("ids") == request.contains("names"))
    throw malformed("found both or none of \"ids\" and \"names\"");
  const bool by_id = request.contains("ids");
  const auto& list = request[by_id ? "ids" : "names"];
  if (!list.is_array()) throw malformed(fmt::format("\"{}\" is no list", by_id ? "ids" : "names"));
  check_count(list.size(), max_ids);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& element = list[i];
    if (by_id) {
      const bool too_large =
          element.is_number_unsigned() &&
          element.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (!element.is_number_integer() || too_large)
        throw malformed(fmt::format("\"ids\"[{}] is no integer of 64 bits", i));
      lookup.ids.push_back(element.get<std::int64_t>());
    } else {
      if (!element.is_string()) throw malformed(fmt::format("\"names\"[{}] is no text", i));
      lookup.names.push_back(element.get<std::string>());
    }
  }
  return lookup;
}

Lookup parse_binary_lookup(std::string variable, std::string_view ids, std::size_t max_ids) {
  if (variable.empty()) {
    throw Error(Code::invalid_argument,
                "a binary request without a variable, expected POST /v1/lookup?variable=NAME");
  }
  if (ids.size() % sizeof(std::int64_t) != 0) {
    throw Error(Code::invalid_argument,
                fmt::format("the body has {} bytes, expected ids of 8 bytes each", ids.size()));
  }
  check_count(ids.size() / sizeof(std::int64_t), max_ids);
  Lookup lookup{.variable = std::move(variable)};
  lookup.ids.resize(ids.size() / sizeof(std::int64_t));
  if (!ids.empty()) std::memcpy(lookup.ids.data(), ids.data(), ids.size());
  return lookup;
}

FoundRows find_rows(const Model& model, const std::string& variable, std::span<const std::int64_t> ids) {
  FoundRows found{.shape = model.shape(variable), .is_table = model.is_table(variable)};
  const DType dtype = model.dtype(variable);
  const std::size_t row_bytes = elements_of_row(found.shape) * std::max<std::size_t>(size_of(dtype), 4);
  if (row_bytes > 0 && ids.size() > kMaxAnswerBytes / row_bytes) {
    throw Error(Code::resource_exhausted,
                fmt::format("found {} ids of rows of {} bytes, expected an answer of at most {} bytes",
                            ids.size(), row_bytes, kMaxAnswerBytes));
  }
  found.shape.at(0) = static_cast<std::int64_t>(ids.size());
  if (found.is_table) found.present = model.contains(variable, ids);
  switch (dtype) {
    case DType::float32:
      look_up<float, float>(model, variable, ids, found);
      break;
    case DType::float64:
      look_up<double, double>(model, variable, ids, found);
      break;
    case DType::int64:
      look_up<std::int64_t, std::int64_t>(model, variable, ids, found);
      break;
    case DType::int32:
      look_up<std::int32_t, std::int32_t>(model, variable, ids, found);
      break;
    case DType::float16:
      look_up<float16, float>(model, variable, ids, found);
      break;
    case DType::bfloat16:
      look_up<bfloat16, float>(model, variable, ids, found);
      break;
    case DType::boolean:
      look_up<bool, bool>(model, variable, ids, found);
      break;
  }
  return found;
}

std::string to_json(const std::string& variable, const FoundRows& rows) {
  fmt::memory_buffer out;
  const auto name = nlohmann::json(variable).dump();
  fmt::format_to(std::back_inserter(out), "{{\"variable\":{},\"dtype\":\"{}\",\"shape\":[", name,
                 to_string(rows.dtype));
  for (std::size_t i = 0; i < rows.shape.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "", rows.shape[i]);
  out.push_back(']');
  if (rows.is_table) {
    fmt::format_to(std::back_inserter(out), ",\"present\":[");
    for (std::size_t i = 0; i < rows.present.size(); ++i)
      fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "", rows.present[i] != 0);
    out.push_back(']');
  }
  fmt::format_to(std::back_inserter(out), ",\"rows\":");
  const char* const at = rows.bytes.data();
  switch (rows.dtype) {
    case DType::float64:
      append_lists<double>(at, rows.shape, out);
      break;
    case DType::int64:
      append_lists<std::int64_t>(at, rows.shape, out);
      break;
    case DType::int32:
      append_lists<std::int32_t>(at, rows.shape, out);
      break;
    case DType::boolean:
      append_lists<bool>(at, rows.shape, out);
      break;
    default:
      append_lists<float>(at, rows.shape, out);
      break;
  }
  out.push_back('}');
  return fmt::to_string(out);
}

}  // namespace capstan::launch::serve
