// text.cpp -- lines of text, of files and of splits.
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

/// Reads the lines that begin in bytes [begin, end) of a file: a line belongs to the split that contains its
/// first byte.
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
    std::string_view rest;  // the rest of the previous line: at least its line end
    (void)reader_.next(rest);
  }

 private:
  data::Kind kind() const noexcept override { return data::Kind::file; }
  void write_state(Writer& out) const override { reader_.write_position(out); }
  void read_state(Reader& in) override { reader_.read_position(in); }
  DataSplit split_;
  bool is_entire_file_;  // must be true for a gzip file, in which skip_to() throws
  io::LineReader reader_;
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

}  // namespace capstan
