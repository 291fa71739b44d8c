// text.cpp -- lines of text, and records of separated fields.
#include <fmt/format.h>

#include "base/printable.hpp"
#include "capstan/detail/split_dataset.hpp"
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

/// Reads the lines that begin in bytes [begin, end) of a file: a line belongs to the split with its first
/// byte.
class SplitCursor final : public data::Cursor<std::string> {
 public:
  explicit SplitCursor(const DataSplit& split)
      : split_(split),
        is_entire_file_(split.begin == 0 &&
                        static_cast<std::uint64_t>(split.end) == std::filesystem::file_size(split.file)),
        reader_(split.file) {
    rewind();
  }
  std::optional<std::string> next() override {
    std::string_view line;
    if (!is_entire_file_ && reader_.offset() >= static_cast<std::uint64_t>(split_.end)) return std::nullopt;
    if (!reader_.next(line)) return std::nullopt;
    return std::string(line);
  }
  void rewind() override {
    reader_.rewind();
    if (is_entire_file_) return;
    if (split_.begin == 0) return reader_.skip_to(0);
    reader_.skip_to(static_cast<std::uint64_t>(split_.begin) - 1);
    std::string_view rest;  // the rest of the line before: at least its end
    (void)reader_.next(rest);
  }

 private:
  data::Kind kind() const noexcept override { return data::Kind::file; }
  void write_state(Writer& out) const override { reader_.write_position(out); }
  void read_state(Reader& in) override { reader_.read_position(in); }
  DataSplit split_;
  bool is_entire_file_;  // always, for a gzip file
  io::LineReader reader_;
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

  /// Reads a quoted field, which may span lines. Leaves `line` at the separator or at the end.
  std::string take_quoted(std::string_view& line, io::LineReader& reader) const {
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
        reader.refuse(fmt::format("expected {} or the end of the line after a quoted field, found {}",
                                  printable({&options_.separator, 1}), printable(line)));
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
  constexpr Dataset<std::string> (*kMake)(data::Paths) = &text_lines;  // selects an overload
  return io::line_dataset<kMake, std::string>(std::move(files), LineParser());
}

Dataset<std::string> text_lines(const DataSplit& split) {
  if (split.file.empty()) {
    throw Error(Code::invalid_argument,
                "text_lines: the split is a range of examples, expected a range of bytes of a file");
  }
  constexpr Dataset<std::string> (*kMake)(const DataSplit&) = &text_lines;
  return Dataset<std::string>(detail::with_recipe<kMake>(
      std::make_shared<data::FilesNode<std::string>>(
          data::Paths{split.file},
          [split](const std::filesystem::path&) { return std::make_unique<SplitCursor>(split); }),
      split));
}

Dataset<std::vector<std::string>> separated(data::Paths files, SeparatedOptions options) {
  data::require_at_least(options.columns, 0, "separated: the number of columns");
  if (options.separator == options.quote || options.separator == '\n') {
    throw Error(Code::invalid_argument,
                "separated: the separator is the quote or a line end, expected another character");
  }
  return io::line_dataset<&separated, std::vector<std::string>>(std::move(files), SeparatedParser(options),
                                                                options);
}

}  // namespace capstan
