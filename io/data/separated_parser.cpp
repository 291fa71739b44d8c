// separated_parser.cpp -- splits lines at separators; a quoted field may contain separators and line ends.
#include "io/data/separated_parser.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/printable.hpp"
#include "io/data/line_cursor.hpp"

namespace capstan::io {

std::optional<std::vector<std::string>> SeparatedParser::next(LineReader& reader) {
  std::string_view line;
  while (reader.next(line)) {
    if (line.empty()) continue;
    auto fields = split(line, reader);
    if (columns_ == 0) columns_ = fields.size();
    if (fields.size() != columns_) {
      reader.throw_error(fmt::format("expected {} fields, found {}", columns_, fields.size()));
    }
    if (options_.header && !header_seen_) {
      header_seen_ = true;
      continue;
    }
    return fields;
  }
  return std::nullopt;
}

std::vector<std::string> SeparatedParser::split(std::string_view line, LineReader& reader) const {
  std::vector<std::string> fields;
  while (true) {
    if (options_.quote != '\0' && !line.empty() && line[0] == options_.quote) {
      fields.push_back(take_quoted(line, reader));
      if (line.empty()) return fields;
      line.remove_prefix(1);
    } else {
      const auto end = line.find(options_.separator);
      fields.emplace_back(line.substr(0, end));
      if (end == line.npos) return fields;
      line.remove_prefix(end + 1);
    }
  }
}

std::string SeparatedParser::take_quoted(std::string_view& line, LineReader& reader) const {
  const std::string begin = reader.location();
  std::string field;
  line.remove_prefix(1);
  while (true) {
    const auto end = line.find(options_.quote);
    field += line.substr(0, end);
    if (end == line.npos) {
      field += reader.line_end();
      if (!reader.next(line)) {
        throw Error(Code::invalid_argument, begin + ": the file ends within a quoted field");
      }
      continue;
    }
    line.remove_prefix(end + 1);
    if (line.empty() || line[0] == options_.separator) return field;
    if (line[0] != options_.quote) {
      reader.throw_error(fmt::format("expected {} or the end of the line after a quoted field, found {}",
                                     printable({&options_.separator, 1}), printable(line)));
    }
    field += options_.quote;
    line.remove_prefix(1);
  }
}

void check(const SeparatedOptions& options, const std::string& reader) {
  data::require_at_least(options.columns, 0, (reader + ": the number of columns").c_str());
  if (options.separator == options.quote || options.separator == '\n') {
    throw Error(Code::invalid_argument,
                reader + ": the separator is the quote or a line end, expected another character");
  }
}

}  // namespace capstan::io

namespace capstan {

Dataset<std::vector<std::string>> separated(data::Paths files, SeparatedOptions options) {
  io::check(options, "separated");
  return io::line_dataset<&separated, std::vector<std::string>>(std::move(files),
                                                                io::SeparatedParser(options), options);
}

}  // namespace capstan
