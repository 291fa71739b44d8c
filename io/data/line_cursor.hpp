// line_cursor.hpp -- datasets of elements parsed from lines.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "capstan/dataset.hpp"
#include "io/data/line_reader.hpp"

namespace capstan::io {

/// Copies `Parser` for each file; its `std::optional<T> next(LineReader&)` reads one element. A stateful
/// parser also needs write_state and read_state to be checkpointable.
template <class T, class Parser>
class LineCursor final : public data::Cursor<T> {
 public:
  LineCursor(const std::filesystem::path& path, Parser parser)
      : reader_(path), fresh_(std::move(parser)), parser_(fresh_) {}
  std::optional<T> next() override { return parser_.next(reader_); }
  void rewind() override {
    reader_.rewind();
    parser_ = fresh_;
  }

 private:
  data::Kind kind() const noexcept override { return data::Kind::file; }
  void write_state(Writer& out) const override {
    reader_.write_position(out);
    if constexpr (requires { parser_.write_state(out); }) parser_.write_state(out);
  }
  void read_state(Reader& in) override {
    reader_.read_position(in);
    if constexpr (requires { parser_.read_state(in); }) parser_.read_state(in);
  }
  LineReader reader_;
  Parser fresh_, parser_;
};

/// `make` is the public reader function that calls line_dataset(). Its signature is make(files, options...).
template <auto make, class T, class Parser, class... Options>
Dataset<T> line_dataset(data::Paths files, Parser parser, const Options&... options) {
  return Dataset<T>(detail::reader_with_recipe<make>(
      std::make_shared<data::FilesNode<T>>(std::move(files),
                                           [parser = std::move(parser)](const std::filesystem::path& path) {
                                             return std::make_unique<LineCursor<T, Parser>>(path, parser);
                                           }),
      options...));
}

}  // namespace capstan::io
