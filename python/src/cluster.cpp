// cluster.cpp -- Cluster, Server, and the settings of a job.
#include "bindings.hpp"
#include "capstan/detail/supervised_program.hpp"

namespace capstan::python {
namespace {

/// Sets the fields of `options` that `settings` names. Throws a Python TypeError for an unknown name.
ClusterOptions options_of(const nb::dict& settings) {
  ClusterOptions options;
  const nb::object fields = nb::cast(&options, nb::rv_policy::reference);
  for (const auto& [name, value] : settings) {
    if (!nb::hasattr(fields, name)) {
      throw nb::type_error(("Cluster.join: unknown setting '" + nb::cast<std::string>(name) +
                            "'; docs/settings.md lists all settings; replace hyphens by underscores")
                               .c_str());
    }
    fields.attr(name) = value;
  }
  return options;
}

/// Joins with the command line `words`, from which the settings are removed.
Cluster join(std::vector<std::string>& words, const ClusterOptions& options) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int count = static_cast<int>(words.size());
  const nb::gil_scoped_release unlocked;
  Cluster cluster = Cluster::join(count, arguments.data(), options);
  std::vector<std::string> left(arguments.begin(), arguments.begin() + count);
  words = std::move(left);
  return cluster;
}

void bind_settings(nb::module_& module) {
  nb::class_<ClusterOptions> fields(module, "ClusterOptions");
#define CAPSTAN_FIELD(name) fields.def_rw(#name, &ClusterOptions::name)
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

}  // namespace

void bind_cluster(nb::module_& module) {
  bind_settings(module);
  nb::class_<Cluster>(module, "Cluster")
      .def_prop_ro("role", [](const Cluster& cluster) { return std::string(to_string(cluster.role())); })
      .def_prop_ro("index", &Cluster::index)
      .def_prop_ro("rank", &Cluster::rank)
      .def_prop_ro("size", &Cluster::size)
      .def_prop_ro("embedded", &Cluster::embedded)
      .def_prop_ro("recovered", &Cluster::recovered)
      .def_prop_ro("name", &Cluster::name)
      .def("recorded_step", &Cluster::recorded_step)
      .def("count", [](const Cluster& cluster, const std::string& name) {
        for (const Role role : {Role::coordinator, Role::ps, Role::worker, Role::evaluator, Role::spare}) {
          if (to_string(role) == name) return cluster.count(role);
        }
        throw Error(Code::invalid_argument, "Cluster.count: found role '" + name +
                                                "', expected coordinator, ps, worker, evaluator or spare");
      });
  module.def(
      "needs_agent",
      [](const nb::dict& settings, const std::vector<std::string>& command) {
        return detail::needs_agent(options_of(settings), command);
      },
      "Returns whether this process must become capstan-agent before it joins.");
  module.def(
      "exec_under_agent",
      [](const nb::dict& settings, const std::vector<std::string>& command) {
        detail::exec_under_agent(options_of(settings), command);
      },
      "Replaces this process by capstan-agent, which runs `command`.");
  module.def(
      "join",
      [](const nb::dict& settings, std::vector<std::string> words) {
        Cluster cluster = join(words, options_of(settings));
        return std::pair(std::move(cluster), std::move(words));
      },
      "Joins the job. Returns the cluster, and the command line without settings.");
  module.def(
      "serve",
      [](const Cluster& cluster) {
        const nb::gil_scoped_release unlocked;
        return Server(cluster).join();
      },
      "Runs the role of this rank until the job ends. Returns the exit code.");
}

}  // namespace capstan::python
