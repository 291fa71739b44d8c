// csv.cpp -- the schema is parsed by toml++, records by io::SeparatedParser.
#include "train/sparse/csv.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/printable.hpp"
#include "capstan/error.hpp"
#include "capstan/hash_key.hpp"
#include "io/data/numbers.hpp"
#include "io/file.hpp"
#include "train/sparse/columns.hpp"

namespace capstan::train {
namespace {

Error schema_error(const std::filesystem::path& file, const toml::source_position& at,
                   const std::string& fault) {
  return Error(Code::invalid_argument, fmt::format("{}:{}: {}", file.string(), at.line, fault));
}

/// Reads a text that is not empty.
std::string read_name(const std::filesystem::path& file, std::string_view key, const toml::node& node) {
  const auto text = node.value<std::string>();
  if (!node.is_string() || text->empty()) {
    throw schema_error(file, node.source().begin,
                       fmt::format("{}: expected the name of a column in quotes", key));
  }
  return *text;
}

std::vector<std::string> read_names(const std::filesystem::path& file, std::string_view key,
                                    const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) {
    throw schema_error(
        file, node.source().begin,
        fmt::format("{}: expected an array of column names such as [\"site\", \"hour\"]", key));
  }
  std::vector<std::string> names;
  for (const toml::node& element : *array) names.push_back(read_name(file, key, element));
  return names;
}

/// Rejects a column that has two roles.
void check_unique(const std::filesystem::path& file, const CsvSchema& schema) {
  std::set<std::string> seen{schema.label};
  for (const auto* names : {&schema.categories, &schema.integers}) {
    for (const std::string& name : *names) {
      if (!seen.insert(name).second) {
        throw Error(Code::invalid_argument, fmt::format("{}: column {} is named twice, expected one role",
                                                        file.string(), printable(name)));
      }
    }
  }
}

SeparatedOptions separated_options(const CsvSchema& schema) {
  return {.separator = schema.separator.front()};
}

}  // namespace

CsvSchema CsvSchema::load(const std::filesystem::path& file) {
  const std::string text = io::read_whole_file(file);
  toml::table root;
  try {
    root = toml::parse(text, file.string());
  } catch (const toml::parse_error& error) {
    throw schema_error(file, error.source().begin, fmt::format("invalid TOML: {}", error.description()));
  }
  CsvSchema schema;
  for (const auto& [key, node] : root) {
    if (key == "label") {
      schema.label = read_name(file, key.str(), node);
    } else if (key == "categories") {
      schema.categories = read_names(file, key.str(), node);
    } else if (key == "integers") {
      schema.integers = read_names(file, key.str(), node);
    } else if (key == "separator") {
      schema.separator = node.value_or(std::string());
      if (!node.is_string() || schema.separator.size() != 1 || schema.separator == "\"" ||
          schema.separator == "\n") {
        throw schema_error(file, node.source().begin,
                           "separator: expected one character other than a quote and a line end, such as "
                           "\",\" or \"\\t\"");
      }
    } else {
      throw schema_error(
          file, key.source().begin,
          fmt::format("unknown key {}, expected label, categories, integers or separator", key.str()));
    }
  }
  if (schema.label.empty()) {
    throw Error(
        Code::invalid_argument,
        fmt::format("{}: label is not set, expected the name of the column of 0 and 1", file.string()));
  }
  if (schema.categories.empty() && schema.integers.empty()) {
    throw Error(
        Code::invalid_argument,
        fmt::format("{}: has no features, expected columns in categories or integers", file.string()));
  }
  check_unique(file, schema);
  return schema;
}

std::map<std::string, std::string> CsvSchema::roles() const {
  std::map<std::string, std::string> roles{{label, "label"}};
  for (const std::string& name : categories) roles[name] = "category";
  for (const std::string& name : integers) roles[name] = "integer";
  return roles;
}

CsvReader::CsvReader(const std::filesystem::path& file, const CsvSchema& schema)
    : reader_(file), parser_(separated_options(schema)) {
  const auto header = parser_.next(reader_);
  if (!header) return;
  label_column_ = find(*header, schema.label);
  for (const std::string& name : schema.categories) categories_.push_back(find(*header, name));
  for (const std::string& name : schema.integers) integers_.push_back(find(*header, name));
}

bool CsvReader::next() {
  const auto fields = parser_.next(reader_);
  if (!fields) return false;
  label_ = parse_label((*fields)[label_column_.index]);
  features_.clear();
  for (const Column& column : categories_) {
    const std::string& text = (*fields)[column.index];
    if (!text.empty()) features_.push_back(static_cast<std::uint64_t>(hash_key(text, column.salt)));
  }
  for (const Column& column : integers_)
    features_.push_back(integer_feature((*fields)[column.index], column));
  return true;
}

CsvReader::Column CsvReader::find(const std::vector<std::string>& header, const std::string& name) const {
  const auto at = std::find(header.begin(), header.end(), name);
  if (at == header.end()) {
    reader_.throw_error(
        fmt::format("the header has no column {}, expected the columns of --schema", printable(name)));
  }
  if (std::find(at + 1, header.end(), name) != header.end()) {
    reader_.throw_error(fmt::format("the header has column {} twice, expected it once", printable(name)));
  }
  return {name, static_cast<std::size_t>(at - header.begin()), static_cast<std::uint64_t>(hash_key(name))};
}

bool CsvReader::parse_label(const std::string& text) const {
  constexpr std::array<std::string_view, 3> kNegative{"0", "-1", "0.0"}, kPositive{"1", "+1", "1.0"};
  if (std::find(kPositive.begin(), kPositive.end(), text) != kPositive.end()) return true;
  if (std::find(kNegative.begin(), kNegative.end(), text) != kNegative.end()) return false;
  reader_.throw_error(fmt::format("column {}: expected 0 or 1, or -1 or +1, as the label, found {}",
                                  printable(label_column_.name), printable(text)));
}

std::uint64_t CsvReader::integer_feature(const std::string& text, const Column& column) const {
  if (text.empty()) return static_cast<std::uint64_t>(hash_key("", column.salt));
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  if (io::parse_integer(text.data(), end, value) != end) {
    reader_.throw_error(
        fmt::format("column {}: expected an integer, found {}", printable(column.name), printable(text)));
  }
  return static_cast<std::uint64_t>(hash_key(fmt::to_string(bucket_of(value)), column.salt));
}

}  // namespace capstan::train
