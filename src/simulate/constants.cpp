// constants.cpp -- sources of the constants, and the results of benchmarks that replace them.
#include "simulate/constants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "capstan/error.hpp"

namespace capstan::simulate {
namespace {

using Json = nlohmann::json;

/// A result of a benchmark, and the constant that it determines.
struct ConstantResult {
  std::string_view name;  // of the result
  double Constants::*value;
  double scale;  // seconds = scale x median, or scale / median for a rate
  bool rate;
  bool of_workers = false;  // the rate is that of all workers together
};

constexpr double kNanosecond = 1e-9;

constexpr ConstantResult kConstantResults[] = {
    {"empty closures", &Constants::closure, 1, true},
    {"a poll of all rings, which are idle rings=512", &Constants::poll_ring, kNanosecond / 512, false},
    {"lookup dim=64 ids=uniform call=8192", &Constants::lookup_row, 1, true, true},
    {"push dim=64 ids=uniform call=8192", &Constants::push_row, 1, true, true},
    {"sgd sparse dim=64", &Constants::apply_row, 1, true},
};

/// Returns the number of workers of a report; 1 for programs without ranks.
double workers_of(const Json& report) {
  const auto context = report.find("context");
  if (context == report.end() || !context->is_object()) return 1;
  const auto roles = context->find("roles");
  if (roles == context->end() || !roles->is_array()) return 1;
  const auto count = std::count_if(roles->begin(), roles->end(), [](const Json& role) {
    return role.is_string() && role.get<std::string>().rfind("worker", 0) == 0;
  });
  return std::max(1.0, static_cast<double>(count));
}

void replace_from_results(Constants& constants, const Json& results, double workers,
                          std::vector<std::string_view>& replaced) {
  for (const Json& result : results) {
    if (!result.is_object() || !result.contains("case") || !result.contains("median")) continue;
    const auto& name = result["case"];
    const auto& median = result["median"];
    if (!name.is_string() || !median.is_number() || median.get<double>() <= 0) continue;
    for (const ConstantResult& known : kConstantResults) {
      if (name.get<std::string>() != known.name) continue;
      const double value = median.get<double>();
      const double ranks = known.of_workers ? workers : 1;
      constants.*known.value = known.rate ? known.scale * ranks / value : known.scale * value;
      for (const ConstantField& field : constant_table()) {
        if (field.value == known.value) replaced.push_back(field.name);
      }
    }
  }
}

/// Searches reports at any depth: perf/run nests them by environment and program. The constants are those of
/// one host: between hosts, rows and closures take messages, which the model has separately.
bool find_results(Constants& constants, const Json& json, std::vector<std::string_view>& replaced) {
  if (!json.is_object()) return false;
  if (const auto results = json.find("results"); results != json.end() && results->is_array()) {
    replace_from_results(constants, *results, workers_of(json), replaced);
    return true;
  }
  bool found = false;
  for (const auto& [key, value] : json.items()) {
    if (key == "two_hosts") {
      found = true;
    } else {
      found |= find_results(constants, value, replaced);
    }
  }
  return found;
}

}  // namespace

const std::vector<ConstantField>& constant_table() {
  static const std::vector<ConstantField> table{
      {"closure", &Constants::closure, "s",
       "perf_schedule: 1 / rate of empty closures; perf_simulate fits it"},
      {"check_member", &Constants::check_member, "s", "assumed: as long as a poll of a ring; not measured"},
      {"step", &Constants::step, "s", "assumed: as long as `closure`; perf_simulate fits it"},
      {"lookup_row", &Constants::lookup_row, "s", "perf_lookup: 1 / rate, dim=64, uniform"},
      {"push_row", &Constants::push_row, "s", "perf_push: 1 / rate, dim=64, uniform"},
      {"apply", &Constants::apply, "s", "half of perf_push's push and flush of a row; perf_simulate fits it"},
      {"apply_row", &Constants::apply_row, "s", "perf_optimizer: 1 / rate of sgd sparse, dim=64"},
      {"serve_row", &Constants::serve_row, "s", "assumed: as long as `lookup_row`; not measured alone"},
      {"poll_ring", &Constants::poll_ring, "s", "perf_scale: a poll of 512 idle rings / 512"},
      {"message", &Constants::message, "s", "a quarter of perf_push's push and flush of a row over TCP"},
      {"connection", &Constants::connection, "s", "perf_scale: half of the setup of a connection"},
      {"member_bytes", &Constants::member_bytes, "bytes", "perf_scale: two addresses of a rank"},
      {"poll_time", &Constants::poll_time, "s", "src/ps/server/ps_server.cpp: kPollOnSharedCore"},
      {"poll_slice", &Constants::poll_slice, "s",
       "src/base/backoff.cpp: 32 polls of the network, perf_scale: 240 ns each"},
      {"wake_up", &Constants::wake_up, "s", "src/ps/server/ps_server.cpp; perf_simulate fits it"},
      {"wake_up_spread", &Constants::wake_up_spread, "s", "perf_simulate fits it"},
      {"timer", &Constants::timer, "s", "perf_simulate fits it"},
  };
  return table;
}

std::vector<std::string_view> read_constants(Constants& constants, std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    throw Error(Code::invalid_argument,
                "cannot read constants: expected JSON of a benchmark, or an object of names and values");
  }
  std::vector<std::string_view> replaced;
  if (find_results(constants, json, replaced)) {
    if (!replaced.empty()) return replaced;
    std::string expected;
    for (const ConstantResult& known : kConstantResults) expected += fmt::format(", \"{}\"", known.name);
    throw Error(
        Code::invalid_argument,
        fmt::format("cannot read constants: found no result on one host that determines one, expected "
                    "one or more of {}",
                    expected.substr(2)));
  }
  for (const auto& [key, value] : json.items()) {
    const auto& table = constant_table();
    const auto field = std::find_if(table.begin(), table.end(),
                                    [&key = key](const ConstantField& f) { return f.name == key; });
    if (field == table.end()) {
      throw Error(Code::invalid_argument,
                  fmt::format("cannot read constants: there is no constant \"{}\"", key));
    }
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) {
      throw Error(
          Code::invalid_argument,
          fmt::format("cannot read constants: {} is {}, expected a number of at least 0", key, value.dump()));
    }
    constants.*field->value = value.get<double>();
    replaced.push_back(field->name);
  }
  return replaced;
}

std::vector<std::string_view> read_constants_file(Constants& constants, const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(Code::not_found, fmt::format("cannot read constants: there is no file {}", path));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    return read_constants(constants, text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace capstan::simulate
