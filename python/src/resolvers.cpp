// resolvers.cpp -- descriptions of a cluster, with the names of tf.distribute.cluster_resolver.
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>

#include "capstan/resolvers.hpp"

#include "bindings.hpp"

namespace capstan::python {
namespace {

using nb::literals::operator""_a;
using Jobs = std::map<std::string, std::vector<std::string>>;
using OptionalText = std::optional<std::string>;

void bind_resolver(nb::module_& module) {
  nb::class_<ClusterResolver>(module, "ClusterResolver",
                              "A description of a cluster and of this process's task. Starts nothing.")
      .def(
          "cluster_spec", [](const ClusterResolver& self) { return self.cluster_spec().jobs; },
          "Return the addresses of the tasks, by job: {'worker': ['h0:2222'], 'ps': ['h1:2222']}.")
      .def_prop_rw(
          "task_type", &ClusterResolver::task_type,
          [](ClusterResolver& self, std::string type) { self.set_task_type(std::move(type)); },
          "'chief', 'worker', 'ps' or 'evaluator'; None if it is not known.")
      .def_prop_rw(
          "task_id", &ClusterResolver::task_id, [](ClusterResolver& self, int id) { self.set_task_id(id); },
          "Number of the task in its job; None if it is not known.")
      .def_prop_rw(
          "rpc_layer", &ClusterResolver::rpc_layer,
          [](ClusterResolver& self, std::string layer) { self.set_rpc_layer(std::move(layer)); },
          "Protocol that reaches tasks, such as 'grpc', or None.")
      .def_prop_ro("environment", &ClusterResolver::environment, "'' unless the resolver was given a value.")
      .def("master", &ClusterResolver::master, "task_type"_a = nb::none(), "task_id"_a = nb::none(),
           "rpc_layer"_a = nb::none(), "Return the address of a task, by default of this process's.")
      .def("num_accelerators", &ClusterResolver::num_accelerators, "task_type"_a = nb::none(),
           "task_id"_a = nb::none(), "Return the number of a task's accelerators by type: {'GPU': 2}.");
}

void bind_simple(nb::module_& module) {
  nb::class_<SimpleClusterResolver, ClusterResolver>(module, "SimpleClusterResolver",
                                                     "A description given by the program.")
      .def(
          "__init__",
          [](SimpleClusterResolver* self, const Jobs& jobs, const std::string& master,
             const OptionalText& task_type, std::optional<int> task_id, const std::string& environment,
             const std::map<std::string, int>& accelerators, const OptionalText& rpc_layer) {
            new (self) SimpleClusterResolver(
                {jobs}, {master, task_type, task_id, environment, accelerators, rpc_layer});
          },
          "cluster_spec"_a, "master"_a = "", "task_type"_a = nb::none(), "task_id"_a = nb::none(),
          "environment"_a = "", "num_accelerators"_a = std::map<std::string, int>{},
          "rpc_layer"_a = nb::none());
  nb::class_<UnionClusterResolver, ClusterResolver>(
      module, "UnionResolver", "The union of several clusters; other values are those of the first resolver.")
      .def(
          "__init__",
          [](UnionClusterResolver* self, const nb::args& resolvers, const OptionalText& task_type,
             std::optional<int> task_id, const OptionalText& rpc_layer) {
            std::vector<std::shared_ptr<const ClusterResolver>> all;
            for (const nb::handle each : resolvers) {
              all.push_back(nb::cast<std::shared_ptr<ClusterResolver>>(each));
            }
            new (self) UnionClusterResolver(std::move(all), {task_type, task_id, rpc_layer});
          },
          "cluster_resolvers"_a, nb::kw_only(), "task_type"_a = nb::none(), "task_id"_a = nb::none(),
          "rpc_layer"_a = nb::none(),
          nb::sig("def __init__(self, *cluster_resolvers: ClusterResolver, task_type: str | None = None, "
                  "task_id: int | None = None, rpc_layer: str | None = None) -> None"));
}

void bind_detected(nb::module_& module) {
  nb::class_<TFConfigClusterResolver, ClusterResolver>(module, "TFConfigClusterResolver",
                                                       "The environment variable TF_CONFIG.")
      .def(
          "__init__",
          [](TFConfigClusterResolver* self, const OptionalText& task_type, std::optional<int> task_id,
             const OptionalText& rpc_layer, const std::string& environment) {
            TFConfigOptions options;
            options.task_type = task_type;
            options.task_id = task_id;
            options.rpc_layer = rpc_layer;
            options.environment = environment;
            new (self) TFConfigClusterResolver(std::move(options));
          },
          "task_type"_a = nb::none(), "task_id"_a = nb::none(), "rpc_layer"_a = nb::none(),
          "environment"_a = "");
  nb::class_<SlurmClusterResolver, ClusterResolver>(module, "SlurmClusterResolver",
                                                    "The Slurm step of this process.")
      .def(
          "__init__",
          [](SlurmClusterResolver* self, const std::map<std::string, int>& jobs, int port_base,
             std::optional<int> gpus_per_node, std::optional<int> gpus_per_task,
             std::optional<int> tasks_per_node, bool auto_set_gpu, const std::string& rpc_layer) {
            SlurmOptions options;
            options.jobs = jobs;
            options.port_base = port_base;
            options.gpus_per_node = gpus_per_node;
            options.gpus_per_task = gpus_per_task;
            options.tasks_per_node = tasks_per_node;
            options.rpc_layer = rpc_layer;
            new (self) SlurmClusterResolver(std::move(options));
            if (auto_set_gpu && self->gpus_per_task() > 0) self->set_visible_gpus();
          },
          "jobs"_a = std::map<std::string, int>{}, "port_base"_a = SlurmOptions{}.port_base,
          "gpus_per_node"_a = nb::none(), "gpus_per_task"_a = nb::none(), "tasks_per_node"_a = nb::none(),
          "auto_set_gpu"_a = true, "rpc_layer"_a = SlurmOptions{}.rpc_layer)
      .def_prop_ro("gpus_per_node", &SlurmClusterResolver::gpus_per_node)
      .def_prop_ro("gpus_per_task", &SlurmClusterResolver::gpus_per_task)
      .def("visible_gpus", &SlurmClusterResolver::visible_gpus,
           "Return this task's GPUs in the format of CUDA_VISIBLE_DEVICES.");
  nb::class_<MpiClusterResolver, ClusterResolver>(module, "MpiClusterResolver",
                                                  "The ranks of a cluster that this process has joined.")
      .def(
          "__init__",
          [](MpiClusterResolver* self, const Cluster& cluster, const OptionalText& rpc_layer) {
            MpiOptions options;
            options.rpc_layer = rpc_layer;
            new (self) MpiClusterResolver(cluster, std::move(options));
          },
          "cluster"_a, "rpc_layer"_a = nb::none());
}

}  // namespace

void bind_resolvers(nb::module_& parent) {
  nb::module_ module = parent.def_submodule("cluster_resolver");
  bind_resolver(module);
  bind_simple(module);
  bind_detected(module);
  module.def(
      "validate_cluster",
      [](const Jobs& jobs, const OptionalText& task_type, std::optional<int> task_id) {
        validate_cluster({jobs}, task_type, task_id);
      },
      "cluster_spec"_a, "task_type"_a = nb::none(), "task_id"_a = nb::none(),
      "Raise InvalidArgumentError for a cluster that a ParameterServerStrategy cannot use.");
}

}  // namespace capstan::python
