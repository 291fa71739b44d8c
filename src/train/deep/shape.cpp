// shape.cpp -- text of a shape, and its parser.
#include "train/deep/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "capstan/error.hpp"

namespace capstan::train {
namespace {

/// "128,64"; empty for the empty text.
std::vector<std::int64_t> parse_numbers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size() || number < 0) {
      throw Error(Code::invalid_argument, fmt::format("\"{}\": expected a size of a layer", word));
    }
    numbers.push_back(number);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return numbers;
}

}  // namespace

std::string DeepShape::text() const {
  std::string text = fmt::format("--factors={} --hidden={}", factors, fmt::join(hidden, ","));
  if (model == DeepModel::dlrm) text += fmt::format(" --bottom={}", fmt::join(bottom, ","));
  if (model == DeepModel::dcn) text += fmt::format(" --cross-layers={}", cross_layers);
  return text;
}

DeepShape DeepShape::parse(DeepModel model, std::string_view text) {
  DeepShape shape{.model = model};
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals);
    const auto numbers = parse_numbers(word.substr(std::min(word.size(), equals + 1)));
    if (name == "--hidden") {
      shape.hidden = numbers;
    } else if (name == "--bottom") {
      shape.bottom = numbers;
    } else if (name == "--factors" && numbers.size() == 1) {
      shape.factors = numbers.front();
    } else if (name == "--cross-layers" && numbers.size() == 1) {
      shape.cross_layers = numbers.front();
    }
  }
  if (shape.text() == text) return shape;
  throw Error(Code::invalid_argument,
              fmt::format("\"{}\": expected the shape of a network, such as {}", text, shape.text()));
}

}  // namespace capstan::train
