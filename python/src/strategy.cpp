// strategy.cpp -- ParameterServerStrategy, with an explicit end.
#include "bindings.hpp"

namespace capstan::python {

Strategy::~Strategy() {
  const nb::gil_scoped_release unlocked;
  close();
}

ParameterServerStrategy& Strategy::get() {
  if (!strategy_) throw Error(Code::failed_precondition, "this strategy is closed; use it before close()");
  return *strategy_;
}

ClusterCoordinator& Strategy::coordinator() {
  if (!coordinator_) coordinator_.emplace(get());
  return *coordinator_;
}

void Strategy::open_scope() {
  scopes_.push_back(std::make_unique<ParameterServerStrategy::Scope>(&get().implementation()));
}

void Strategy::close_scope() {
  if (scopes_.empty()) throw Error(Code::failed_precondition, "no scope of this strategy is open");
  scopes_.pop_back();
}

void Strategy::close() {
  while (!scopes_.empty()) scopes_.pop_back();
  coordinator_.reset();
  strategy_.reset();
}

void bind_strategy(nb::module_& module) {
  using nb::literals::operator""_a;
  nb::class_<PsLoad>(module, "PsLoad")
      .def_ro("ps", &PsLoad::ps)
      .def_ro("host", &PsLoad::host)
      .def_ro("shards", &PsLoad::shards)
      .def_ro("bytes", &PsLoad::bytes)
      .def_ro("pushes", &PsLoad::pushes)
      .def_ro("rows_pushed", &PsLoad::rows_pushed)
      .def_ro("shard_names", &PsLoad::shard_names);
  nb::class_<Strategy>(module, "Strategy")
      .def(
          "__init__",
          [](Strategy* self, const Cluster& cluster, const std::optional<Partitioner>& partitioner,
             bool by_bytes, bool on_gpu, std::optional<int> communication_dtype, bool int8_lookups) {
            StrategyOptions options;
            if (partitioner) options.variable_partitioner = *partitioner;
            options.placement = by_bytes ? Placement::by_bytes : Placement::round_robin;
            options.memory = on_gpu ? ShardMemory::device : ShardMemory::host;
            options.communication_dtype = dtype_of(communication_dtype);
            options.int8_lookups = int8_lookups;
            const nb::gil_scoped_release unlocked;
            new (self) Strategy(cluster, std::move(options));
          },
          "cluster"_a, "partitioner"_a = nb::none(), "by_bytes"_a = false, "on_gpu"_a = false,
          "communication_dtype"_a = nb::none(), "int8_lookups"_a = false)
      .def("open_scope", &Strategy::open_scope)
      .def("close_scope", &Strategy::close_scope)
      .def("close", &Strategy::close, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("is_open", &Strategy::is_open)
      .def(
          "variables", [](Strategy& self, bool trainable) { return self.get().variables(trainable); },
          "trainable_only"_a = false)
      .def("loads",
           [](Strategy& self) {
             const nb::gil_scoped_release unlocked;
             return self.get().loads();
           })
      .def("describe_loads", [](Strategy& self) {
        const nb::gil_scoped_release unlocked;
        return self.get().describe_loads();
      });
}

}  // namespace capstan::python
