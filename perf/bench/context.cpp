// context.cpp -- collects the context from /proc, the build and the cluster.
#include "perf/bench/context.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/settings.hpp"
#include "capstan/cluster.hpp"
#include "capstan/version.hpp"
#include "cluster/runtime.hpp"
#include "perf/bench/core_distance.hpp"
#include "perf/bench/options.hpp"
#include "transport/ucx/version.hpp"

namespace capstan::perf {
namespace {

using nlohmann::json;

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") || line.starts_with("CPU part")) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown";
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : "unknown";
}

std::string mpi_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

json context_of(const Options& o) {
  utsname system{};
  static_cast<void>(uname(&system));  // on failure the names stay empty
  const double gib =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 30);
  const BuildInfo built = build_info();
  json context = {
      {"date", fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)))},
      {"host", system.nodename},
      {"cpu", cpu_model()},
      {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
      {"memory_gib", gib},
      {"kernel", system.release},
      {"huge_pages",
       {{"private", first_line("/sys/kernel/mm/transparent_hugepage/enabled")},
        {"shared", first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled")}}},
      {"capstan", CAPSTAN_VERSION_STRING},
      {"commit", built.commit},
      {"build", built.build_type},
      {"compiler", __VERSION__},
      {"ucx", transport::ucx_version()},
      {"mpi", mpi_version()},
      {"options",
       {{"rows", o.rows},
        {"iters", o.iters},
        {"warmup", o.warmup},
        {"repeat", o.repeat},
        {"seed", o.seed},
        {"zipf_exponent", o.zipf_exponent},
        {"bound_huge_pages", o.huge_pages}}},
  };
#ifndef __OPTIMIZE__
  context["warning"] = "built without optimization: the results are meaningless";
#endif
  return context;
}

void add_cluster(json& context, const Cluster& cluster) {
  context["ranks"] = cluster.size();
  context["embedded"] = cluster.embedded();
  json roles = json::array();
  for (const cluster::Member& member : cluster.runtime()->members()) roles.push_back(member.name());
  context["roles"] = roles;
  context["transports"] = {{"window", cluster.runtime()->settings().text("window")},
                           {"UCX_TLS", variable("UCX_TLS")},
                           {"CAPSTAN_UCX_TLS", variable("CAPSTAN_UCX_TLS")},
                           {"UCX_NET_DEVICES", variable("UCX_NET_DEVICES")}};
  context["settings"] = parse_json(cluster.runtime()->settings().to_json(), "the settings", Code::internal);
}

void add_core_distance(json& context) {
  const std::optional<double> ns = cache_line_round_trip_ns();
  context["cache_line_round_trip_ns"] = ns ? json(std::lround(*ns)) : json();
}

}  // namespace capstan::perf
