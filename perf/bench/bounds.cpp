// bounds.cpp -- parser of the file of --bounds.
#include "perf/bench/bounds.hpp"

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "capstan/error.hpp"
#include "io/file.hpp"

namespace capstan::perf {

Bounds Bounds::from(const std::string& path) {
  Bounds bounds;
  if (path.empty()) return bounds;
  try {
    const nlohmann::json all = parse_json(io::read_whole_file(path), path, Code::invalid_argument);
    for (const auto& [name, curve] : all.items()) {
      Curve& into = bounds.curves_[name];
      into.by = curve.at("by").get<std::string>();
      for (const auto& [size, value] : curve.at("values").items()) {
        into.values[std::stoull(size)] = value.get<double>();
      }
    }
  } catch (const std::exception& error) {
    throw Error(Code::invalid_argument, "--bounds " + path + ": " + error.what() +
                                            ", expected {NAME: {\"by\": TEXT, \"values\": {SIZE: NUMBER}}}");
  }
  return bounds;
}

std::optional<double> Bounds::at(const std::string& name, std::uint64_t size) const {
  const auto curve = curves_.find(name);
  if (curve == curves_.end() || curve->second.values.empty()) return std::nullopt;
  const auto distance = [size](std::uint64_t measured) {
    return std::abs(std::log(static_cast<double>(measured) + 1) - std::log(static_cast<double>(size) + 1));
  };
  return std::min_element(curve->second.values.begin(), curve->second.values.end(),
                          [&](const auto& a, const auto& b) { return distance(a.first) < distance(b.first); })
      ->second;
}

std::string Bounds::by(const std::string& name) const {
  const auto curve = curves_.find(name);
  return curve == curves_.end() ? "" : curve->second.by;
}

}  // namespace capstan::perf
