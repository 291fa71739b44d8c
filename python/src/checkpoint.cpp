// checkpoint.cpp -- CheckpointManager and Checkpoint. User state is JSON, which the Python files encode.
#include <map>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>

#include "bindings.hpp"

namespace capstan::python {
namespace {

using nb::literals::operator""_a;
using Names = std::map<std::string, std::string>;

RestoreOptions restore_options(const Names& names, bool allow_missing, bool allow_extra) {
  RestoreOptions options;
  options.names = names;
  options.allow_missing = allow_missing;
  options.allow_extra = allow_extra;
  return options;
}

template <class Class>
void bind_restored(nb::class_<Class>& restored) {
  restored.def_prop_ro("user_state", [](const Class& self) { return self.user_state(); })
      .def_prop_ro("restored_from", [](const Class& self) { return self.restored_from(); })
      .def("unmatched", [](const Class& self) { return self.unmatched(); })
      .def("assert_consumed", [](const Class& self) { self.assert_consumed(); });
}

}  // namespace

void bind_checkpoint(nb::module_& module) {
  nb::class_<CheckpointManager> manager(module, "CheckpointManager");
  manager
      .def(
          "__init__",
          [](CheckpointManager* self, Strategy& strategy, const std::filesystem::path& directory,
             int max_to_keep, double keep_every_n_hours, std::int64_t every_steps,
             std::chrono::milliseconds every_time) {
            CheckpointOptions options;
            options.directory = directory;
            options.max_to_keep = max_to_keep;
            options.keep_every_n_hours = keep_every_n_hours;
            options.interval = {.steps = every_steps, .time = every_time};
            new (self) CheckpointManager(strategy.get(), std::move(options));
          },
          nb::keep_alive<1, 2>(), "strategy"_a, "directory"_a, "max_to_keep"_a, "keep_every_n_hours"_a,
          "every_steps"_a, "every_time"_a)
      .def(
          "save",
          [](CheckpointManager& self, std::int64_t step, const std::string& state, bool global,
             bool incremental, bool background) {
            const SaveOptions options{global ? SaveConsistency::global : SaveConsistency::shard, incremental,
                                      background};
            const nb::gil_scoped_release unlocked;
            return self.save(step, state, options);
          },
          "step"_a, "state"_a, "global_"_a, "incremental"_a, "background"_a)
      .def("due", &CheckpointManager::due, "step"_a)
      .def("wait", &CheckpointManager::wait, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "restore_latest",
          [](CheckpointManager& self, const Names& names, bool allow_missing, bool allow_extra) {
            const nb::gil_scoped_release unlocked;
            return self.restore_latest(restore_options(names, allow_missing, allow_extra));
          },
          "names"_a, "allow_missing"_a, "allow_extra"_a)
      .def("checkpoints", &CheckpointManager::checkpoints)
      .def("latest", &CheckpointManager::latest);
  bind_restored(manager);

  nb::class_<Checkpoint> checkpoint(module, "Checkpoint");
  checkpoint
      .def(
          "__init__", [](Checkpoint* self, Strategy& strategy) { new (self) Checkpoint(strategy.get()); },
          nb::keep_alive<1, 2>(), "strategy"_a)
      .def(
          "write",
          [](Checkpoint& self, const std::filesystem::path& directory, const std::string& state) {
            const nb::gil_scoped_release unlocked;
            self.write(directory, state);
          },
          "directory"_a, "state"_a)
      .def(
          "read",
          [](Checkpoint& self, const std::filesystem::path& directory, const Names& names, bool allow_missing,
             bool allow_extra) {
            const nb::gil_scoped_release unlocked;
            return self.read(directory, restore_options(names, allow_missing, allow_extra));
          },
          "directory"_a, "names"_a, "allow_missing"_a, "allow_extra"_a);
  bind_restored(checkpoint);
}

}  // namespace capstan::python
