// output.cpp -- formats text; column widths count UTF-8 characters, not bytes.
#include "launch/checkpoint/output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "capstan/error.hpp"

namespace capstan::launch::checkpoint {
namespace {

/// Number of characters of UTF-8 text.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string line(const Row& cells, const std::vector<std::size_t>& widths, const std::vector<bool>& right) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - width_of(cells[i]), ' ');
    if (i > 0) text += "  ";
    text += right[i] ? padding + cells[i] : cells[i] + padding;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

}  // namespace

void print(std::string_view text) {
  std::cout << text << std::flush;
  if (!std::cout) throw Error(Code::resource_exhausted, "cannot write to standard output");
}

void print_json(const nlohmann::json& json) {
  print(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string table(const Row& header, std::span<const Row> rows) {
  Row titles = header;
  std::vector<bool> right;
  std::vector<std::size_t> widths;
  for (std::string& title : titles) {
    right.push_back(title.starts_with('>'));
    if (right.back()) title.erase(0, 1);
    widths.push_back(width_of(title));
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text = line(titles, widths, right);
  for (const Row& row : rows) text += line(row, widths, right);
  return text;
}

std::string wrapped(std::span<const std::string> words, std::string_view indent) {
  constexpr std::size_t kWidth = 100;
  std::string text;
  std::size_t used = 0;
  for (const std::string& word : words) {
    const std::size_t width = width_of(word);
    const bool starts_line = used == 0 || used + 1 + width > kWidth;
    if (starts_line) {
      text += text.empty() ? "" : "\n";
      text += indent;
      used = indent.size();
    }
    text += starts_line ? word : " " + word;
    used += width + (starts_line ? 0 : 1);
  }
  return text.empty() ? text : text + "\n";
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

std::string count_text(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace capstan::launch::checkpoint
