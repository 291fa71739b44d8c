// criteo.cpp -- click logs. Tab-separated fields: a label, 13 integers and 26 categories. Only the label must
// not be empty.
#include <fmt/format.h>

#include <algorithm>

#include "base/printable.hpp"
#include "capstan/readers.hpp"
#include "io/data/line_cursor.hpp"
#include "io/data/numbers.hpp"

namespace capstan {
namespace {

struct CriteoParser {
  bool has_label;

  std::optional<CriteoExample> next(io::LineReader& reader) const {
    std::string_view line;
    do {
      if (!reader.next(line)) return std::nullopt;
    } while (line.empty());
    CriteoExample example;
    const std::size_t wanted = CriteoExample::kIntegers + CriteoExample::kCategories + (has_label ? 1 : 0);
    std::size_t field = has_label ? 0 : 1;  // field 0 is the label
    for (std::size_t found = 1;; ++found, ++field) {
      const auto tab = line.find('\t');
      if (found > wanted || (tab == line.npos && found < wanted)) {
        const auto more = static_cast<std::size_t>(std::count(line.begin(), line.end(), '\t'));
        reader.throw_error(fmt::format("expected {} tab-separated fields, found {}", wanted, found + more));
      }
      take(line.substr(0, tab), field, example, reader);
      if (tab == line.npos) return example;
      line.remove_prefix(tab + 1);
    }
  }

 private:
  static void take(std::string_view text, std::size_t field, CriteoExample& example,
                   const io::LineReader& reader) {
    const char* const end = text.data() + text.size();
    if (field == 0) {
      if (io::parse_float(text.data(), end, example.label) != end ||
          (example.label != 0 && example.label != 1)) {
        reader.throw_error("expected 0 or 1 as the label, found " + printable(text));
      }
      return;
    }
    if (text.empty()) return;
    if (field <= CriteoExample::kIntegers) {
      const std::size_t i = field - 1;
      if (io::parse_integer(text.data(), end, example.integers[i]) != end) {
        reader.throw_error(
            fmt::format("expected an integer in integer field {}, found {}", i + 1, printable(text)));
      }
      example.integers_present |= std::uint32_t{1} << i;
    } else {
      const std::size_t i = field - 1 - CriteoExample::kIntegers;
      const auto [behind, error] = std::from_chars(text.data(), end, example.categories[i], 16);
      if (error != std::errc() || behind != end) {
        reader.throw_error(fmt::format("expected up to 8 hexadecimal digits in category field {}, found {}",
                                       i + 1, printable(text)));
      }
      example.categories_present |= std::uint32_t{1} << i;
    }
  }
};

}  // namespace

Dataset<CriteoExample> criteo(data::Paths files, bool has_label) {
  return io::line_dataset<&criteo, CriteoExample>(std::move(files), CriteoParser{has_label}, has_label);
}

}  // namespace capstan
