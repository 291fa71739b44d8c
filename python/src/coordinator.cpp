// coordinator.cpp -- functions of Python on workers.
//
// All Python functions share one C++ function, run_python. The first argument is the Python function, an
// object per worker, so it is sent to each worker once. The other arguments are a pickle, and the objects and
// values that the pickle refers to by number. The format of a pickle is defined in capstan/_remote.py, whose
// functions `run` and `make` this file calls on a worker.
#include "object.hpp"

namespace capstan::python {
namespace {

using Handles = std::vector<PerWorker<Object>>;

// Set once, when the package is imported; the interpreter never unloads it.
struct Hooks {
  PyObject* run = nullptr;   // (function, pickle, objects, values) -> bytes
  PyObject* make = nullptr;  // (pickle, objects) -> object
  PyObject* code_and_message = nullptr;
} hooks;

nb::list list_of(const Handles& objects) {
  nb::list list;
  for (const auto& object : objects) list.append(object->get());
  return list;
}

Bytes run_python(const PerWorker<Object>& function, const Bytes& arguments, const Handles& objects,
                 const std::vector<Bytes>& values) {
  const nb::gil_scoped_acquire locked;
  try {
    nb::list results;
    for (const Bytes& value : values) results.append(to_python(value));
    const nb::object result =
        nb::handle(hooks.run)(function->get(), to_python(arguments), list_of(objects), results);
    return to_bytes(nb::cast<nb::bytes>(result));
  } catch (nb::python_error& error) {
    throw_error(error);
  }
}

Object make_python(const Bytes& arguments, const Handles& objects) {
  const nb::gil_scoped_acquire locked;
  try {
    return Object(nb::handle(hooks.make)(to_python(arguments), list_of(objects)));
  } catch (nb::python_error& error) {
    throw_error(error);
  }
}

/// The future result of a function, as a pickle.
class Future {
 public:
  explicit Future(RemoteValue<Bytes> value) : value_(std::move(value)) {}
  const RemoteValue<Bytes>& value() const noexcept { return value_; }
  bool ready() const { return value_.ready(); }
  nb::bytes fetch() const {
    if (!ready()) {
      wait_interruptibly([&](auto interval) { return detail::wait_for(*value_.result(), interval); });
    }
    return to_python(value_.fetch());
  }

 private:
  RemoteValue<Bytes> value_;
};

Handles handles_of(const std::vector<const PerWorker<Object>*>& objects) {
  Handles all;
  for (const auto* object : objects) all.push_back(*object);
  return all;
}

Future schedule(Strategy& strategy, const PerWorker<Object>& function, const nb::bytes& arguments,
                const std::vector<const PerWorker<Object>*>& objects,
                const std::vector<const Future*>& values, const std::optional<ScheduleOptions>& options,
                std::optional<int> worker) {
  ClusterCoordinator& coordinator = strategy.coordinator();
  Bytes bytes = to_bytes(arguments);
  Handles handles = handles_of(objects);
  std::vector<RemoteValue<Bytes>> inputs;
  for (const Future* value : values) inputs.push_back(value->value());
  const nb::gil_scoped_release unlocked;
  if (worker) return Future(coordinator.schedule_on<&run_python>(*worker, function, bytes, handles, inputs));
  if (options)
    return Future(coordinator.schedule_with<&run_python>(*options, function, bytes, handles, inputs));
  return Future(coordinator.schedule<&run_python>(function, bytes, handles, inputs));
}

}  // namespace

Object::Object(nb::object object)
    : object_(object.release().ptr(), [](PyObject* owned) {
        if (owned == nullptr || Py_IsInitialized() == 0) return;  // the interpreter has ended, and freed it
        const nb::gil_scoped_acquire locked;
        Py_DECREF(owned);
      }) {}

void throw_error(nb::python_error& error) {
  const auto [code, message] =
      nb::cast<std::pair<int, std::string>>(nb::handle(hooks.code_and_message)(error.value()));
  throw Error(static_cast<Code>(code), message);
}

void bind_coordinator(nb::module_& module) {
  using nb::literals::operator""_a;
  module.def(
      "set_hooks",
      [](nb::object run, nb::object make, nb::object code_and_message) {
        hooks = {run.release().ptr(), make.release().ptr(), code_and_message.release().ptr()};
      },
      "Sets the functions of capstan/_remote.py that workers call.");
  module.def("current_worker_index", &current_worker_index);

  nb::class_<ScheduleOptions>(module, "ScheduleOptions")
      .def(
          "__init__",
          [](ScheduleOptions* self, int priority, std::optional<int> affinity,
             std::optional<std::chrono::milliseconds> deadline) {
            new (self) ScheduleOptions{priority, affinity, deadline};
          },
          "priority"_a, "affinity"_a.none(), "deadline"_a.none());
  nb::class_<Future>(module, "Future").def("ready", &Future::ready).def("fetch", &Future::fetch);
  nb::class_<PerWorker<Object>>(module, "PerWorkerObject");

  auto strategy = nb::borrow<nb::class_<Strategy>>(module.attr("Strategy"));
  strategy
      .def("schedule", &schedule, "function"_a, "arguments"_a, "objects"_a, "values"_a,
           "options"_a = nb::none(), "worker"_a = nb::none())
      .def(
          "create_per_worker_object",
          [](Strategy& self, const nb::bytes& arguments,
             const std::vector<const PerWorker<Object>*>& objects) {
            ClusterCoordinator& coordinator = self.coordinator();
            return coordinator.create_per_worker_resource<&make_python>(to_bytes(arguments),
                                                                        handles_of(objects));
          },
          "arguments"_a, "objects"_a)
      .def(
          "join",
          [](Strategy& self, std::optional<std::chrono::milliseconds> timeout) {
            using Clock = std::chrono::steady_clock;
            ClusterCoordinator& coordinator = self.coordinator();
            const auto end = timeout ? std::optional(Clock::now() + *timeout) : std::nullopt;
            bool done = false;
            wait_interruptibly([&](std::chrono::milliseconds interval) {
              if (end) {
                const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now());
                interval = std::clamp(left, std::chrono::milliseconds(0), interval);
              }
              done = coordinator.join(interval);
              return done || (end && Clock::now() >= *end);
            });
            return done;
          },
          "timeout"_a.none())
      .def("done", [](Strategy& self) { return self.coordinator().done(); })
      .def("worker_indices", [](Strategy& self) { return self.coordinator().worker_indices(); })
      .def("record_step",
           [](Strategy& self, std::int64_t step) {
             const nb::gil_scoped_release unlocked;
             self.coordinator().record_step(step);
           })
      .def("scalar", [](Strategy& self, const std::string& name, double value,
                        std::int64_t step) { self.coordinator().scalar(name, value, step); })
      .def("task_states",
           [](Strategy& self) {
             std::vector<nb::tuple> all;
             for (const TaskState& state : self.coordinator().task_states()) {
               all.push_back(
                   nb::make_tuple(std::string(to_string(state.role)), state.index, state.dead, state.name));
             }
             return all;
           })
      .def("statistics", [](Strategy& self) {
        const CoordinatorStatistics now = self.coordinator().statistics();
        nb::dict all;
        all["scheduled"] = now.scheduled;
        all["finished"] = now.finished;
        all["failed"] = now.failed;
        all["cancelled"] = now.cancelled;
        all["moved"] = now.moved;
        all["queued"] = now.queued;
        all["running"] = now.running;
        return all;
      });
}

}  // namespace capstan::python
