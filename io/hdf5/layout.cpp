// layout.cpp -- how checkpoints, parts and datasets are named, and which names are refused.
#include "io/hdf5/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "capstan/error.hpp"
#include "io/hdf5/part_writer.hpp"

namespace capstan::io {
namespace {

/// H5S_MAX_RANK.
constexpr std::size_t kMostAxes = 32;

constexpr std::size_t kMaxNameBytes = 512;  // well below HDF5's object header limit of 64 KiB

/// Decimal digits and nothing else, at least `min_digits` of them.
std::optional<std::int64_t> parse_number(std::string_view digits, std::size_t min_digits) {
  if (digits.size() < min_digits || digits.front() == '-') return std::nullopt;
  if (digits.size() > min_digits && digits.front() == '0') return std::nullopt;  // one spelling per number
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// 16 lower-case hexadecimal digits.
bool is_attempt(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// Length of the UTF-8 sequence that starts `text`, 0 when it is not a valid one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) > 0x9f;
  const bool too_large = first == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || too_large ? 0 : length;
}

void check_text(std::string_view kind, std::string_view name) {
  if (name.empty()) throw Error(Code::invalid_argument, fmt::format("{} has an empty name", kind));
  if (name.size() > kMaxNameBytes) {
    throw Error(Code::invalid_argument,
                fmt::format("{} has a name of {} bytes; at most {} fit", kind, name.size(), kMaxNameBytes));
  }
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t length = utf8_length(name.substr(at));
    const bool control = static_cast<unsigned char>(name[at]) < 0x20 || name[at] == 0x7f;
    if (length == 0 || control) {
      throw Error(Code::invalid_argument,
                  fmt::format("{} has a name with {} at byte {}", kind,
                              control ? "a control character" : "a byte that is not UTF-8", at));
    }
    at += length;
  }
}

void check_component(std::string_view kind, std::string_view name, std::string_view component) {
  if (component.empty() || component == "." || component == "..") {
    throw Error(Code::invalid_argument, fmt::format("{} \"{}\": a component between slashes is {}", kind,
                                                    name, component.empty() ? "empty" : component));
  }
}

}  // namespace

std::string part_file_name(int ps, int ps_count) {
  return fmt::format("part-{:05}-of-{:05}.h5", ps, ps_count);
}

std::string part_file_name(int ps, int ps_count, std::uint64_t attempt) {
  return fmt::format("part-{:05}-of-{:05}-{:016x}.h5", ps, ps_count, attempt);
}

std::string checkpoint_name(std::int64_t step) { return fmt::format("checkpoint-{:08}", step); }

std::optional<std::int64_t> step_of_name(std::string_view name) {
  constexpr std::string_view kPrefix = "checkpoint-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return parse_number(name.substr(kPrefix.size()), 8);
}

std::optional<PartNumber> part_of_name(std::string_view name) {
  constexpr std::string_view kPrefix = "part-", kOf = "-of-", kSuffix = ".h5";
  const auto of = name.find(kOf);
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || of == std::string_view::npos)
    return std::nullopt;
  const auto middle = of + kOf.size();
  if (of < kPrefix.size() || name.size() < middle + kSuffix.size()) return std::nullopt;
  const auto index = parse_number(name.substr(kPrefix.size(), of - kPrefix.size()), 5);
  std::string_view rest = name.substr(middle, name.size() - kSuffix.size() - middle);
  if (const auto dash = rest.find('-'); dash != rest.npos) {
    if (!is_attempt(rest.substr(dash + 1))) return std::nullopt;
    rest = rest.substr(0, dash);
  }
  const auto count = parse_number(rest, 5);
  if (!index || !count || *index >= *count) return std::nullopt;
  return PartNumber{*index, *count};
}

std::string dataset_path(std::string_view variable, std::string_view which) {
  return fmt::format("variables/{}/{}{}", variable, which == kValue || which == kChangedRows ? "" : "slots/",
                     which);
}

void check_variable_name(std::string_view name) {
  check_text("a variable", name);
  for (std::size_t from = 0;;) {
    const auto slash = name.find('/', from);
    check_component("variable", name, name.substr(from, slash - from));
    if (slash == std::string_view::npos) return;
    from = slash + 1;
  }
}

void check_which(std::string_view which) {
  check_text("an optimizer slot", which);
  check_component("optimizer slot", which, which);
  if (which.find('/') != std::string_view::npos) {
    throw Error(Code::invalid_argument, fmt::format("optimizer slot \"{}\" has a '/' in its name", which));
  }
}

void check_names_apart(std::span<const std::string> names, bool increment) {
  for (const std::string& name : names) {
    for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string_view rest = std::string_view(name).substr(slash + 1);
      const std::string_view next = rest.substr(0, rest.find('/'));
      if (next != "value" && next != "slots" && !(increment && next == kChangedRows)) continue;
      const std::string prefix = name.substr(0, slash);
      if (std::binary_search(names.begin(), names.end(), prefix)) {
        throw Error(
            Code::invalid_argument,
            fmt::format("variables \"{}\" and \"{}\" cannot be in one checkpoint: \"{}/{}\" holds the data "
                        "of the first; rename one",
                        prefix, name, prefix, next));
      }
    }
  }
}

void check_shape(std::string_view array, std::span<const std::uint64_t> shape, DType dtype) {
  if (shape.empty() || shape.size() > kMostAxes) {
    throw Error(Code::invalid_argument,
                fmt::format("{} has rank {}; 1 to {} can be stored", array, shape.size(), kMostAxes));
  }
  std::uint64_t bytes = size_of(dtype);
  for (const std::uint64_t dimension : shape) {
    if (dimension == 0) return;
    if (dimension > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / bytes) {
      throw Error(Code::invalid_argument, fmt::format("{} has more than 2^63 bytes", array));
    }
    bytes *= dimension;
  }
}

std::optional<DType> dtype_of_name(std::string_view name) {
  for (const DType dtype : kDTypes) {
    if (name == to_string(dtype)) return dtype;
  }
  return std::nullopt;
}

std::uint64_t row_bytes(std::span<const std::uint64_t> shape, DType dtype) noexcept {
  std::uint64_t bytes = size_of(dtype);
  for (std::size_t axis = 1; axis < shape.size(); ++axis) bytes *= shape[axis];
  return bytes;
}

std::uint64_t missing_value_bits(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
      return 0x7fc0dead;  // quiet NaN with a payload
    case DType::float64:
      return 0x7ff80000'0000dead;  // quiet NaN with a payload
    case DType::int64:
      return 0x80000000'00000000;  // the smallest int64
    case DType::int32:
      return 0x80000000;  // the smallest int32
    case DType::float16:
      return 0x7ead;  // quiet NaN with a payload
    case DType::bfloat16:
      return 0x7fcd;  // quiet NaN with a payload
    case DType::boolean:
      return 0x7f;  // neither true nor false
  }
  return 0;
}

}  // namespace capstan::io
