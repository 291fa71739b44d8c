// diff.cpp -- `capstan checkpoint diff`, with the exit codes of diff(1).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "launch/checkpoint/byte_progress.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/compare.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/output.hpp"
#include "launch/failure.hpp"

namespace capstan::launch::checkpoint {
namespace {

using Json = nlohmann::json;

enum DiffExit : int { kEqual = 0, kDifferent = 1, kError = 2 };

std::string name_of(const ArrayDifference& difference) {
  return difference.component == io::kValue
             ? difference.variable
             : fmt::format("{} slot {}", difference.variable, difference.component);
}

std::string text_of(const ArrayDifference& difference) {
  if (difference.what == "values") {
    std::string text =
        fmt::format("{} of {} differ", difference.rows.rows, count_text(difference.of_rows, "row"));
    text += fmt::format(", by at most {}", number_text(difference.rows.largest));
    if (difference.rows.not_finite > 0) {
      text += fmt::format(", by NaN or infinity in {}", count_text(difference.rows.not_finite, "element"));
    }
    return text;
  }
  if (difference.in_a.empty() && difference.in_b.empty()) return difference.what;
  return fmt::format("{} {} in A, {} in B", difference.what,
                     difference.in_a.empty() ? "none" : difference.in_a,
                     difference.in_b.empty() ? "none" : difference.in_b);
}

std::string as_text(const io::CheckpointReader& a, const io::CheckpointReader& b,
                    const Comparison& comparison) {
  std::string text = fmt::format("A  {}, step {}\nB  {}, step {}\n", a.directory().string(), a.step(),
                                 b.directory().string(), b.step());
  std::vector<Row> rows;
  for (const ArrayDifference& difference : comparison.differences) {
    rows.push_back({name_of(difference), text_of(difference)});
  }
  if (rows.empty()) return text + fmt::format("equal: {}\n", count_text(comparison.arrays, "array"));
  return text + table({"variable", "difference"}, rows);
}

Json as_json(const io::CheckpointReader& a, const io::CheckpointReader& b, const Comparison& comparison) {
  Json differences = Json::array();
  for (const ArrayDifference& difference : comparison.differences) {
    Json json{{"variable", difference.variable}, {"which", difference.component}, {"what", difference.what}};
    if (difference.what == "values") {
      json["rows"] = difference.rows.rows;
      json["of_rows"] = difference.of_rows;
      json["max_abs_difference"] = difference.rows.largest;
      json["not_finite"] = difference.rows.not_finite;
    } else if (!difference.what.starts_with("only")) {
      json["a"] = difference.in_a;
      json["b"] = difference.in_b;
    }
    differences.push_back(std::move(json));
  }
  return {{"a", {{"path", a.directory().string()}, {"step", a.step()}}},
          {"b", {{"path", b.directory().string()}, {"step", b.step()}}},
          {"equal", comparison.differences.empty()},
          {"arrays_in_both", comparison.arrays},
          {"differences", std::move(differences)}};
}

int compare_and_print(const Request& request) {
  const io::CheckpointReader a(find_checkpoint(request.from)), b(find_checkpoint(request.to));
  Comparison comparison;
  {
    const auto arrays_a = io::arrays_of(a.variables(), request.compare_slots);
    const auto arrays_b = io::arrays_of(b.variables(), request.compare_slots);
    ByteProgress progress("compare", io::bytes_of(arrays_a) + io::bytes_of(arrays_b));
    comparison = compare(a, b, request.compare_slots, progress.callback());
  }
  if (request.json) {
    print_json(as_json(a, b, comparison));
  } else {
    print(as_text(a, b, comparison));
  }
  return comparison.differences.empty() ? kEqual : kDifferent;
}

}  // namespace

int diff(const Request& request) {
  try {
    return compare_and_print(request);
  } catch (const Error& error) {
    report_failure(error.code(), error.what());
    return kError;
  }
}

}  // namespace capstan::launch::checkpoint
