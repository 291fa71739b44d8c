// output.hpp -- prints text and JSON, and formats tables, shapes, numbers and counts.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::launch::checkpoint {

/// Writes `text` to standard output and flushes. Throws Error(resource_exhausted).
void print(std::string_view text);

/// Prints JSON; replaces invalid UTF-8. Throws Error(resource_exhausted).
void print_json(const nlohmann::json& json);

using Row = std::vector<std::string>;

/// Formats columns two spaces apart. A leading '>' in a title is not printed; it right-aligns the column.
std::string table(const Row& header, std::span<const Row> rows);

/// Wraps words to lines of at most 100 characters, each prefixed with `indent`.
std::string wrapped(std::span<const std::string> words, std::string_view indent);

/// "(101, 7)".
std::string shape_text(std::span<const std::uint64_t> shape);
/// Six significant digits: "0.25", "-1.5e+09".
std::string number_text(double value);
/// "1 part", "2 parts".
std::string count_text(std::uint64_t count, std::string_view thing);

}  // namespace capstan::launch::checkpoint
