// text.cpp -- lines as they are, and records of fields between separators.
#include <fmt/format.h>

#include "capstan/readers.hpp"
#include "io/data/line_cursor.hpp"

namespace capstan {
namespace {

struct LineParser {
  std::optional<std::string> next(io::LineReader& reader) const {
    std::string_view line;
    if (!reader.next(line)) return std::nullopt;
    return std::string(line);
  }
};

class SeparatedParser {
 public:
  explicit SeparatedParser(SeparatedOptions options)
      : options_(options), columns_(static_cast<std::uint64_t>(options.columns)) {}

  std::optional<std::vector<std::string>> next(io::LineReader& reader) {
    std::string_view line;
    while (reader.next(line)) {
      if (line.empty()) continue;
      auto fields = split(line, reader);
      if (columns_ == 0) columns_ = fields.size();
      if (fields.size() != columns_) {
        reader.refuse(fmt::format("expected {} fields, found {}", columns_, fields.size()));
      }
      if (options_.header && !header_seen_) {
        header_seen_ = true;
        continue;
      }
      return fields;
    }
    return std::nullopt;
  }
  void write_state(Writer& out) const {
    capstan::write(out, columns_);
    capstan::write(out, header_seen_);
  }
  void read_state(Reader& in) {
    columns_ = capstan::read<std::uint64_t>(in);
    header_seen_ = capstan::read<bool>(in);
  }

 private:
  std::vector<std::string> split(std::string_view line, io::LineReader& reader) const {
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

  /// A field in quotes, which may go on over further lines. Leaves `line` at the separator or at the end.
  std::string take_quoted(std::string_view& line, io::LineReader& reader) const {
    const std::string begin = reader.place();
    std::string field;
    line.remove_prefix(1);
    while (true) {
      const auto end = line.find(options_.quote);
      field += line.substr(0, end);
      if (end == line.npos) {
        field += reader.line_end();
        if (!reader.next(line)) {
          throw Error(Code::invalid_argument, begin + ": a quoted field does not end");
        }
        continue;
      }
      line.remove_prefix(end + 1);
      if (line.empty() || line[0] == options_.separator) return field;
      if (line[0] != options_.quote) {
        reader.refuse(fmt::format("expected {} or the end of the line behind a quoted field, found {}",
                                  io::quoted({&options_.separator, 1}), io::quoted(line)));
      }
      field += options_.quote;
      line.remove_prefix(1);
    }
  }

  SeparatedOptions options_;
  std::uint64_t columns_;
  bool header_seen_ = false;
};

}  // namespace

Dataset<std::string> text_lines(data::Paths files) {
  return io::line_dataset<std::string>(std::move(files), LineParser());
}

Dataset<std::vector<std::string>> separated(data::Paths files, SeparatedOptions options) {
  data::require_at_least(options.columns, 0, "separated: the number of columns");
  if (options.separator == options.quote || options.separator == '\n') {
    throw Error(Code::invalid_argument, "separated: the separator is the quote or a line end");
  }
  return io::line_dataset<std::vector<std::string>>(std::move(files), SeparatedParser(options));
}

}  // namespace capstan
