// cluster_options.cpp -- maps each field of ClusterOptions to its setting.
#include "base/cluster_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

extern char** environ;

namespace capstan {
namespace {

std::string as_text(int value) { return fmt::format("{}", value); }
std::string as_text(std::uint64_t bytes) { return fmt::format("{}", bytes); }
std::string as_text(bool value) { return value ? "true" : "false"; }
std::string as_text(std::chrono::milliseconds value) { return fmt::format("{}ms", value.count()); }
const std::string& as_text(const std::string& value) { return value; }

/// Calls `visit(field name, value in options, default)` for each field.
template <class Visit>
void with_fields(const ClusterOptions& options, const Visit& visit) {
  const ClusterOptions defaults;
#define CAPSTAN_FIELD(name) visit(std::string_view(#name), options.name, defaults.name)
  CAPSTAN_FIELD(ps);
  CAPSTAN_FIELD(workers);
  CAPSTAN_FIELD(roles);
  CAPSTAN_FIELD(role_map);
  CAPSTAN_FIELD(role_file);
  CAPSTAN_FIELD(role);
  CAPSTAN_FIELD(evaluator);
  CAPSTAN_FIELD(replicas_of_ps);
  CAPSTAN_FIELD(spares);
  CAPSTAN_FIELD(bind);
  CAPSTAN_FIELD(supervise);
  CAPSTAN_FIELD(max_restarts);
  CAPSTAN_FIELD(ps_restart);
  CAPSTAN_FIELD(ps_threads);
  CAPSTAN_FIELD(ps_wait);
  CAPSTAN_FIELD(worker_wait);
  CAPSTAN_FIELD(coordinator_wait);
  CAPSTAN_FIELD(heartbeat_timeout);
  CAPSTAN_FIELD(deadline_grace);
  CAPSTAN_FIELD(run_dir);
  CAPSTAN_FIELD(metrics_every);
  CAPSTAN_FIELD(trace);
  CAPSTAN_FIELD(prometheus_file);
  CAPSTAN_FIELD(late_workers);
  CAPSTAN_FIELD(join_address);
  CAPSTAN_FIELD(join);
  CAPSTAN_FIELD(log_level);
  CAPSTAN_FIELD(bootstrap);
  CAPSTAN_FIELD(start_timeout);
  CAPSTAN_FIELD(wait_timeout);
  CAPSTAN_FIELD(push_ring_bytes);
  CAPSTAN_FIELD(checkpoint_bandwidth);
  CAPSTAN_FIELD(checkpoint_fast_dir);
  CAPSTAN_FIELD(heap_slab_bytes);
  CAPSTAN_FIELD(window);
  CAPSTAN_FIELD(require_transport);
  CAPSTAN_FIELD(max_inflight_per_worker);
  CAPSTAN_FIELD(queue_limit);
  CAPSTAN_FIELD(watchdog_timeout);
  CAPSTAN_FIELD(schedule_start_delay);
  CAPSTAN_FIELD(schedule_start_delay_max);
  CAPSTAN_FIELD(nan_gradients);
  CAPSTAN_FIELD(replicas);
  CAPSTAN_FIELD(replica_device);
  CAPSTAN_FIELD(gpu_transfer);
  CAPSTAN_FIELD(gpu_stand_ins);
  CAPSTAN_FIELD(gpu_deterministic);
#undef CAPSTAN_FIELD
}

/// Calls `visit(name of the setting, text)` for each field that differs from its default.
template <class Visit>
void with_set_fields(const ClusterOptions& options, const Visit& visit) {
  with_fields(options, [&visit](std::string_view field, const auto& value, const auto& standard) {
    if (value == standard) return;
    std::string name(field);
    std::replace(name.begin(), name.end(), '_', '-');
    visit(name, as_text(value));
  });
}

}  // namespace

Settings settings_of(const ClusterOptions& options) {
  Settings settings;
  with_set_fields(options, [&settings](const std::string& name, const std::string& text) {
    settings.set_from_program(name, text);
  });
  return settings;
}

Settings collected_settings(const ClusterOptions& options) {
  Settings settings = settings_of(options);
  settings.load_environment(environ);
  if (const char* file = std::getenv("CAPSTAN_CONFIG")) settings.load_file(file, "CAPSTAN_CONFIG");
  return settings;
}

bool set_from_argument(Settings& settings, std::string_view argument) {
  constexpr std::string_view kPrefix = "--capstan-";
  if (!argument.starts_with(kPrefix)) return false;
  const auto equals = argument.find('=');
  const auto name = argument.substr(kPrefix.size(), equals - kPrefix.size());
  settings.set_from_flag(name, equals == std::string_view::npos ? "true" : argument.substr(equals + 1));
  return true;
}

std::vector<std::string> flags_of(const ClusterOptions& options, const Settings& settings) {
  std::vector<std::string> flags;
  with_set_fields(options, [&](const std::string& name, const std::string& text) {
    if (settings.origin(name).kind == Origin::Kind::program) flags.push_back("--" + name + "=" + text);
  });
  return flags;
}

}  // namespace capstan
