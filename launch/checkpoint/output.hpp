// output.hpp -- tables, sizes and shapes as the subcommands print them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::launch::checkpoint {

/// To standard output, all of it. Throws Error(resource_exhausted).
void print(std::string_view text);

/// The same of JSON; what is not UTF-8 in it is replaced.
void print_json(const nlohmann::json& json);

using Row = std::vector<std::string>;

/// Columns two spaces apart under `header`; those that begin with '>' there are aligned to the right.
std::string table(const Row& header, std::span<const Row> rows);

/// Words one space apart in lines of at most 100 characters, each behind `indent`.
std::string wrapped(std::span<const std::string> words, std::string_view indent);

/// "950 B", "21.4 kB", "1.25 GB": powers of 1000.
std::string size_text(std::uint64_t bytes);
/// "(101, 7)".
std::string shape_text(std::span<const std::uint64_t> shape);
/// Six digits: "0.25", "-1.5e+09".
std::string number_text(double value);
/// "1 part", "2 parts".
std::string count_text(std::uint64_t count, std::string_view thing);

}  // namespace capstan::launch::checkpoint
