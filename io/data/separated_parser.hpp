// separated_parser.hpp -- records of separated fields (CSV, TSV).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/readers.hpp"
#include "capstan/serialize.hpp"
#include "io/data/line_reader.hpp"

namespace capstan::io {

/// Parser of LineCursor.
class SeparatedParser {
 public:
  explicit SeparatedParser(const SeparatedOptions& options)
      : options_(options), columns_(static_cast<std::uint64_t>(options.columns)) {}

  /// Returns the fields of the next record; nothing at the end of the file.
  std::optional<std::vector<std::string>> next(LineReader& reader);
  void write_state(Writer& out) const {
    capstan::write(out, columns_);
    capstan::write(out, header_seen_);
  }
  void read_state(Reader& in) {
    columns_ = capstan::read<std::uint64_t>(in);
    header_seen_ = capstan::read<bool>(in);
  }

 private:
  std::vector<std::string> split(std::string_view line, LineReader& reader) const;
  /// Reads a quoted field, which may span lines. Leaves `line` at the separator or at the end.
  std::string take_quoted(std::string_view& line, LineReader& reader) const;

  SeparatedOptions options_;
  std::uint64_t columns_;
  bool header_seen_ = false;
};

/// Throws Error(invalid_argument) that begins with `reader`, the name of the calling function.
void check(const SeparatedOptions& options, const std::string& reader);

}  // namespace capstan::io
