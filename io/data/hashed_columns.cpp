// hashed_columns.cpp -- reads separated fields as features whose ids are hashes of column and category.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/printable.hpp"
#include "capstan/hash_key.hpp"
#include "capstan/readers.hpp"
#include "io/data/line_cursor.hpp"
#include "io/data/numbers.hpp"
#include "io/data/separated_parser.hpp"

namespace capstan {
namespace {

class HashedParser {
 public:
  explicit HashedParser(HashedColumns columns) : columns_(std::move(columns)), fields_(columns_.separated) {}

  std::optional<SparseExample> next(io::LineReader& reader) {
    const auto fields = fields_.next(reader);
    if (!fields) return std::nullopt;
    SparseExample example;
    if (columns_.label >= 0)
      example.label = number(field(*fields, columns_.label, reader), columns_.label, reader);
    example.ids.reserve(columns_.numbers.size() + columns_.categories.size());
    example.values.reserve(example.ids.capacity());
    const auto add = [&](std::string_view text, std::int64_t column, float value) {
      example.ids.push_back(hash_key(text, static_cast<std::uint64_t>(column)));
      example.values.push_back(value);
    };
    for (const std::int64_t column : columns_.numbers) {
      const std::string& text = field(*fields, column, reader);
      if (!text.empty()) add("", column, number(text, column, reader));
    }
    for (const std::int64_t column : columns_.categories) {
      const std::string& text = field(*fields, column, reader);
      if (!text.empty()) add(text, column, 1);
    }
    return example;
  }
  void write_state(Writer& out) const { fields_.write_state(out); }
  void read_state(Reader& in) { fields_.read_state(in); }

 private:
  static const std::string& field(const std::vector<std::string>& fields, std::int64_t column,
                                  const io::LineReader& reader) {
    const auto at = static_cast<std::size_t>(column);
    if (at >= fields.size())
      reader.throw_error(
          fmt::format("expected a field in column {}, found {} fields", column, fields.size()));
    return fields[at];
  }
  static float number(const std::string& text, std::int64_t column, const io::LineReader& reader) {
    float value = 0;
    const char* const end = text.data() + text.size();
    if (io::parse_float(text.data(), end, value) != end)
      reader.throw_error(fmt::format("expected a number in column {}, found {}", column, printable(text)));
    return value;
  }

  HashedColumns columns_;
  io::SeparatedParser fields_;
};

}  // namespace

HashedColumns criteo_columns() {
  HashedColumns columns{.separated = kTabSeparated};
  columns.numbers.resize(CriteoExample::kIntegers);
  std::iota(columns.numbers.begin(), columns.numbers.end(), 1);
  columns.categories.resize(CriteoExample::kCategories);
  std::iota(columns.categories.begin(), columns.categories.end(), 1 + std::int64_t{CriteoExample::kIntegers});
  return columns;
}

Dataset<SparseExample> hashed_columns(data::Paths files, HashedColumns columns) {
  io::check(columns.separated, "hashed_columns");
  data::require_at_least(columns.label, -1, "hashed_columns: the column of the label");
  for (const auto& list : {columns.numbers, columns.categories})
    for (const std::int64_t column : list) data::require_at_least(column, 0, "hashed_columns: a column");
  return io::line_dataset<&hashed_columns, SparseExample>(std::move(files), HashedParser(columns), columns);
}

}  // namespace capstan
