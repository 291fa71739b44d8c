// quantities.cpp -- a number of at least 0, and a unit of a table.
#include "launch/plan/quantities.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <span>

#include "capstan/error.hpp"

namespace capstan::launch::plan {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kBandwidths[] = {{"Gb/s", 1e9 / 8}, {"Mb/s", 1e6 / 8}, {"Tb/s", 1e12 / 8},
                                {"GB/s", 1e9},     {"MB/s", 1e6},     {"TB/s", 1e12}};
constexpr Unit kTimes[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
constexpr Unit kSizes[] = {{"GB", 1e9},          {"MB", 1e6},
                           {"TB", 1e12},         {"GiB", 1024.0 * 1024 * 1024},
                           {"MiB", 1024 * 1024}, {"TiB", std::size_t{1} << 40}};

double parse_quantity(std::string_view option, const std::string& text, std::span<const Unit> units,
                      std::string_view expected) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  while (*end == ' ') ++end;
  for (const Unit& unit : units) {
    if (unit.name != end || end == text.c_str() || !std::isfinite(number) || number < 0) continue;
    const double quantity = number * unit.factor;
    if (std::isfinite(quantity)) return quantity;
  }
  throw Error(Code::invalid_argument, fmt::format("{}: expected {}, found \"{}\"", option, expected, text));
}

}  // namespace

double parse_bandwidth(std::string_view option, const std::string& text) {
  const double bandwidth =
      parse_quantity(option, text, kBandwidths, "a number with Gb/s, Mb/s, GB/s or MB/s, such as 100Gb/s");
  if (bandwidth > 0) return bandwidth;
  throw Error(Code::invalid_argument,
              fmt::format("{}: expected a bandwidth above 0, found \"{}\"", option, text));
}

double parse_time(std::string_view option, const std::string& text) {
  return parse_quantity(option, text, kTimes, "a number with s, ms, us or ns, such as 5ms");
}

double parse_size(std::string_view option, const std::string& text) {
  return parse_quantity(option, text, kSizes, "a number with GB, MB, GiB or MiB, such as 64GB");
}

}  // namespace capstan::launch::plan
