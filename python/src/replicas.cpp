// replicas.cpp -- the replicas of a worker: threads that run a Python function together.
//
// capstan/_replicas.py defines the meaning of arguments and results; this file starts the threads and runs
// their collectives.
#include <nanobind/stl/vector.h>

#include "object.hpp"

namespace capstan::python {
namespace {

std::vector<nb::object> borrowed(const std::vector<const Object*>& objects) {
  std::vector<nb::object> all;
  for (const Object* object : objects) all.push_back(nb::borrow(object->get()));
  return all;
}

/// Returns the replicas of a strategy on the coordinator, or, if it is null, of the calling thread.
Replicas replicas_of(Strategy* strategy) { return strategy != nullptr ? strategy->get() : get_strategy(); }

/// Calls body(replica) on each replica, and returns the results by replica.
std::vector<nb::object> run_on_replicas(Strategy* strategy, const nb::callable& body) {
  const Replicas replicas = replicas_of(strategy);
  const Object function{nb::object(body)};
  PerReplica<Object> results;
  {
    const nb::gil_scoped_release unlocked;
    results = replicas.run([&function](ReplicaContext& replica) {
      return with_lock([&] { return function.get()(replica.replica_id_in_sync_group()); });
    });
  }
  std::vector<const Object*> pointers;
  for (const Object& result : results) pointers.push_back(&result);
  return borrowed(pointers);
}

/// Calls combine(values by replica) once, when all replicas have made this call; returns its result to each.
/// The replicas' calls must have the same `name`.
nb::object run_collective(const std::string& name, const nb::object& value, const nb::callable& combine) {
  ReplicaContext& self = get_replica_context();
  const Object mine{nb::object(value)};
  const Object function{nb::object(combine)};
  const detail::Collective call{
      name, typeid(Object), &mine, [&function](std::span<const void* const> values) {
        std::vector<const Object*> all;
        for (const void* each : values) all.push_back(static_cast<const Object*>(each));
        const detail::CrossReplicaScope outside;  // the function runs for all replicas
        const nb::gil_scoped_acquire locked;
        try {
          return std::shared_ptr<const void>(
              std::make_shared<const Object>(nb::object(function.get()(borrowed(all)))));
        } catch (nb::python_error& error) {
          throw_error(error);  // every replica throws it
        }
      }};
  std::shared_ptr<const void> result;
  {
    const nb::gil_scoped_release unlocked;
    result = detail::run_collective(self.group(), self.replica_id_in_sync_group(), call);
  }
  return nb::borrow(static_cast<const Object*>(result.get())->get());
}

}  // namespace

void bind_replicas(nb::module_& module) {
  using nb::literals::operator""_a;
  module.def("run_on_replicas", &run_on_replicas, "strategy"_a.none(), "body"_a,
             "Calls body(replica) on each replica of this rank, and returns the results by replica.");
  module.def(
      "run_collective",
      [](const std::string& name, const nb::object& value, const nb::callable& combine) {
        return run_collective(name, value, combine);
      },
      "name"_a, "value"_a, "combine"_a,
      "In a replica: calls combine(values by replica) once, and returns its result to each replica.");
  module.def(
      "num_replicas_in_sync", [](Strategy* strategy) { return replicas_of(strategy).num_replicas_in_sync(); },
      "strategy"_a.none());
  module.def(
      "replica_id",
      []() -> std::optional<int> {
        if (!in_replica_context()) return std::nullopt;
        return get_replica_context().replica_id_in_sync_group();
      },
      "Returns the number of the calling thread's replica, or None outside of a replica.");
}

}  // namespace capstan::python
