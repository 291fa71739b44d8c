// bounds.hpp -- bandwidths and rates measured by ucx_perftest on the same transport, from the file of
// --bounds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace capstan::perf {

/// The file maps a name to {"by": "ucx_perftest ...", "values": {"SIZE": number, ...}}.
class Bounds {
 public:
  /// Reads the file; returns no bounds if the path is empty. Throws Error(invalid_argument) for a file of
  /// another format.
  static Bounds from(const std::string& path);

  bool has(const std::string& name) const { return curves_.contains(name); }
  /// Returns the value at the measured size nearest to `size` by ratio; nullopt if there is no such bound.
  std::optional<double> at(const std::string& name, std::uint64_t size) const;
  /// Name of the program that measured the bound; empty if there is none.
  std::string by(const std::string& name) const;

 private:
  struct Curve {
    std::string by;
    std::map<std::uint64_t, double> values;
  };
  std::map<std::string, Curve> curves_;
};

}  // namespace capstan::perf
