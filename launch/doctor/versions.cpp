// versions.cpp -- compares macros of headers with the versions that the libraries report.
#include "launch/doctor/versions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/topology.hpp"
#include "io/hdf5/version.hpp"
#include "mpi/version.hpp"
#include "transport/ucx/version.hpp"

namespace capstan::launch::doctor {
namespace {

constexpr const char* kRebuild = "rebuild Capstan with the modules that are loaded at run time";

/// First version number: "4.1.4" in "Open MPI v4.1.4, package: ...".
std::string_view number_in(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    if (std::isdigit(static_cast<unsigned char>(text[begin])) == 0) continue;
    std::size_t end = text.find_first_not_of("0123456789.", begin);
    if (end == std::string_view::npos) end = text.size();
    while (text[end - 1] == '.') --end;
    const std::string_view number = text.substr(begin, end - begin);
    if (number.find('.') != std::string_view::npos) return number;
    begin = end;
  }
  return {};
}

/// Name of the MPI implementation: "Open MPI" in "Open MPI v4.1.4".
std::string_view family_of(std::string_view text) {
  for (const std::string_view family : {"Open MPI", "MPICH", "MVAPICH", "Intel(R) MPI", "CRAY MPICH"}) {
    if (text.find(family) != std::string_view::npos) return family;
  }
  return {};
}

std::vector<int> parts_of(std::string_view version) {
  std::vector<int> parts;
  while (!version.empty()) {
    parts.push_back(std::atoi(std::string(version).c_str()));
    const std::size_t dot = version.find('.');
    version = dot == std::string_view::npos ? std::string_view() : version.substr(dot + 1);
  }
  return parts;
}

}  // namespace

Finding judge_versions(std::string_view built, std::string_view runs) {
  const std::string observed = fmt::format("built with {}, runs with {}", built, runs);
  const std::vector<int> a = parts_of(built);
  const std::vector<int> b = parts_of(runs);
  if (a.empty() || b.empty() || a[0] != b[0]) return fail(observed, kRebuild);
  const std::size_t common = std::min(a.size(), b.size());
  const bool same = std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin());
  return same ? pass(observed) : warn(observed, kRebuild);
}

Finding judge_mpi(std::string_view built, std::string_view runs) {
  const std::string_view first_line = runs.substr(0, runs.find_first_of(",\n"));
  const std::string observed = fmt::format("built with {}, runs with {}", built, first_line);
  if (family_of(built) != family_of(runs)) {
    return fail(observed, "load the module of the MPI that Capstan was built with, or rebuild it");
  }
  Finding versions = judge_versions(number_in(built), number_in(runs));
  versions.observed = observed;
  return versions;
}

Finding check_mpi(const Request&) { return judge_mpi(mpi::header_version(), mpi::library_version()); }

Finding check_ucx(const Request&) {
  Finding finding = judge_versions(transport::ucx_header_version(), transport::ucx_version());
  if (transport::ucx_has_threads()) {
    finding.observed += ", built for multiple threads";
    return finding;
  }
  return combine(finding, warn("built without --enable-mt, but a Capstan worker uses UCX from two threads",
                               "use a UCX configured with --enable-mt (Spack: ucx+thread_multiple)"));
}

Finding check_hdf5(const Request&) {
  return judge_versions(io::hdf5_header_version(), io::hdf5_library_version());
}

Finding check_hwloc(const Request&) {
  return judge_versions(topology::hwloc_header_version(), topology::hwloc_version());
}

}  // namespace capstan::launch::doctor
