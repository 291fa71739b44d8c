// csv.hpp -- examples in CSV files with a header: the schema that names the columns, and the reader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/data/line_reader.hpp"
#include "io/data/separated_parser.hpp"

namespace capstan::train {

/// Roles of the columns, by the names in the header. Other columns are ignored.
struct CsvSchema {
  std::string label = {};
  std::vector<std::string> categories = {};
  std::vector<std::string> integers = {};
  std::string separator = ",";  // one character

  /// Reads a TOML file with the keys `label`, `categories`, `integers` and `separator`. Throws Error:
  /// not_found, permission_denied; invalid_argument "file:line: ...".
  static CsvSchema load(const std::filesystem::path& file);

  /// "label", "category" or "integer", by the name of the column.
  std::map<std::string, std::string> roles() const;
};

/// Reads one file; gzip is detected. Columns are found by their names in the header, so their order may
/// differ between files. One thread at a time.
class CsvReader {
 public:
  /// Throws Error: not_found; invalid_argument if the header does not have each column of the
  /// schema once.
  CsvReader(const std::filesystem::path& file, const CsvSchema& schema);

  /// Reads the next example; returns false at the end. Throws Error(invalid_argument) "file:line: ...".
  bool next();
  bool label() const noexcept { return label_; }
  /// One hash for each feature of the example, of column and category or bucket (columns.hpp). A missing
  /// category is no feature; a missing integer is a feature.
  const std::vector<std::uint64_t>& features() const noexcept { return features_; }

 private:
  struct Column {
    std::string name;
    std::size_t index;   // among the fields of a record
    std::uint64_t salt;  // of the hashes
  };

  Column find(const std::vector<std::string>& header, const std::string& name) const;
  bool parse_label(const std::string& text) const;
  std::uint64_t integer_feature(const std::string& text, const Column& column) const;

  io::LineReader reader_;
  io::SeparatedParser parser_;
  Column label_column_ = {};
  std::vector<Column> categories_, integers_;
  bool label_ = false;
  std::vector<std::uint64_t> features_;
};

}  // namespace capstan::train
