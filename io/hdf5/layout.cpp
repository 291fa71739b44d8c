// layout.cpp -- formats, parses and checks names of checkpoints, parts and datasets.
#include "io/hdf5/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/name.hpp"
#include "base/printable.hpp"
#include "capstan/error.hpp"
#include "io/hdf5/part_writer.hpp"

namespace capstan::io {
namespace {

/// H5S_MAX_RANK.
constexpr std::size_t kMaxRank = 32;

/// Parses a string of at least `min_digits` decimal digits and nothing else.
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

std::string dataset_path(std::string_view variable, std::string_view component) {
  return fmt::format("variables/{}/{}{}", variable,
                     component == kValue || component == kChangedRows ? "" : "slots/", component);
}

void check_component(std::string_view component) {
  check_name("optimizer slot", component);
  if (component.find('/') != std::string_view::npos) {
    throw Error(
        Code::invalid_argument,
        fmt::format("optimizer slot {}: the name has a '/', expected one component", printable(component)));
  }
}

void check_no_collisions(std::span<const std::string> names, bool increment) {
  for (const std::string& name : names) {
    for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string_view rest = std::string_view(name).substr(slash + 1);
      const std::string_view next = rest.substr(0, rest.find('/'));
      if (next != "value" && next != "slots" && !(increment && next == kChangedRows)) continue;
      const std::string prefix = name.substr(0, slash);
      if (std::binary_search(names.begin(), names.end(), prefix)) {
        throw Error(
            Code::invalid_argument,
            fmt::format("variables \"{}\" and \"{}\" cannot be in one checkpoint: \"{}/{}\" stores data of "
                        "the first; rename one",
                        prefix, name, prefix, next));
      }
    }
  }
}

void check_no_collision_with(const std::set<std::string>& names, const std::string& added) {
  std::vector<std::string> related{added};
  for (auto slash = added.find('/'); slash != std::string::npos; slash = added.find('/', slash + 1)) {
    if (std::string prefix = added.substr(0, slash); names.contains(prefix)) related.push_back(prefix);
  }
  const std::string inside = added + "/";
  for (auto name = names.lower_bound(inside); name != names.end() && name->starts_with(inside); ++name) {
    related.push_back(*name);
  }
  std::sort(related.begin(), related.end());
  check_no_collisions(related, /*increment=*/true);
}

void check_shape(std::string_view array, std::span<const std::uint64_t> shape, DType dtype) {
  if (shape.empty() || shape.size() > kMaxRank) {
    throw Error(Code::invalid_argument,
                fmt::format("{} has rank {}, expected 1 to {}", array, shape.size(), kMaxRank));
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
