// variable.cpp -- variables of any dtype, counters and update groups.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <tuple>
#include <utility>

#include "bindings.hpp"
#include "raw_variable.hpp"

namespace capstan::python {
namespace {

/// The bytes of a shard, which stay mapped while an array refers to them.
nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>> mapped_bytes(const RawVariable& variable) {
  using Memory = std::shared_ptr<const std::byte>;
  auto memory = std::make_unique<Memory>();
  {
    const nb::gil_scoped_release unlocked;
    *memory = variable.mapped_memory();
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(memory->get());
  const nb::capsule owner(memory.get(), [](void* held) noexcept { delete static_cast<Memory*>(held); });
  (void)memory.release();
  return {data, {variable.rows() * variable.width() * size_of(variable.dtype())}, owner};
}

ReadMode mode_of(bool consistent) { return consistent ? ReadMode::consistent : ReadMode::relaxed; }

VariableOptions options_of(const std::optional<Optimizer>& optimizer, bool trainable, int aggregation,
                           const std::optional<UpdateGroup>& group,
                           const std::optional<std::string>& memory) {
  VariableOptions options;
  options.optimizer = optimizer;
  options.trainable = trainable;
  options.aggregation = static_cast<VariableAggregation>(aggregation);
  options.group = group;
  if (memory) options.memory = *memory == "device" ? ShardMemory::device : ShardMemory::host;
  return options;
}

void bind_reads_and_pushes(nb::class_<RawVariable>& variable) {
  using nb::literals::operator""_a;
  variable
      .def(
          "lookup",
          [](const RawVariable& self, const Ids& ids, const Out& out, bool consistent) {
            check_element(self, out);
            const nb::gil_scoped_release unlocked;
            self.lookup(span_of(ids), out.data(), out.size(), mode_of(consistent));
          },
          "ids"_a, "out"_a, "consistent"_a = false)
      .def(
          "pull",
          [](const RawVariable& self, std::uint64_t first_row, const Out& out, bool consistent) {
            check_element(self, out);
            const nb::gil_scoped_release unlocked;
            self.pull(first_row, out.data(), out.size(), mode_of(consistent));
          },
          "first_row"_a, "out"_a, "consistent"_a = false)
      .def("push",
           [](const RawVariable& self, const Ids& ids, const In& gradient) {
             check_element(self, gradient);
             const nb::gil_scoped_release unlocked;
             self.push(span_of(ids), gradient.data(), gradient.size());
           })
      .def("push_dense",
           [](const RawVariable& self, const In& gradient) {
             check_element(self, gradient);
             const nb::gil_scoped_release unlocked;
             self.push_dense(gradient.data(), gradient.size());
           })
      .def(
          "lookup_async",
          [](const RawVariable& self, const Ids& ids, const Out& out) {
            check_element(self, out);
            const nb::gil_scoped_release unlocked;
            return self.lookup_async(span_of(ids), out.data(), out.size());
          },
          nb::keep_alive<0, 3>())  // rows arrive in `out` until the Pending is destroyed
      .def("pushed", &RawVariable::pushed)
      .def("flush", [](const RawVariable& self) {
        const nb::gil_scoped_release unlocked;
        self.flush();
      });
}

void bind_assignments(nb::class_<RawVariable>& variable) {
  using Op = RawVariable::Op;
  variable
      .def("assign_rows",
           [](const RawVariable& self, std::uint64_t first_row, const In& values) {
             check_element(self, values);
             const nb::gil_scoped_release unlocked;
             self.update(Op::set, first_row, values.data(), values.size());
           })
      .def("assign",
           [](const RawVariable& self, int op, const In& values) {
             check_element(self, values);
             const nb::gil_scoped_release unlocked;
             self.update_all(static_cast<Op>(op), values.data(), values.size());
           })
      .def("scatter", [](const RawVariable& self, int op, const Ids& ids, const In& values) {
        check_element(self, values);
        const nb::gil_scoped_release unlocked;
        self.scatter(static_cast<Op>(op), span_of(ids), values.data(), values.size());
      });
}

detail::AnyInitialValue value_of(const In& values, const std::vector<std::int64_t>& shape) {
  detail::WholeValue whole{Shape(shape), Bytes(values.nbytes()), false};
  if (!whole.bytes.empty()) std::memcpy(whole.bytes.data(), values.data(), whole.bytes.size());
  detail::AnyInitialValue initial;
  initial.whole = [whole = std::move(whole)] { return whole; };
  return initial;
}

}  // namespace

void bind_variable(nb::module_& module) {
  using nb::literals::operator""_a;
  module.def(
      "buffer", [](std::size_t bytes) { return array_of(Buffer<std::uint8_t>(bytes)); }, "bytes"_a,
      "Return an array of bytes without values, in the memory of an earlier one if there is one.");
  nb::class_<UpdateGroup>(module, "UpdateGroup", "Variables for which workers synchronize their steps.")
      .def_prop_ro("name", &UpdateGroup::name)
      .def("end_step", &UpdateGroup::end_step, nb::call_guard<nb::gil_scoped_release>(),
           "In a function: end this worker's step, and wait until it may continue. Return the number of its "
           "steps.")
      .def("leave", &UpdateGroup::leave, nb::call_guard<nb::gil_scoped_release>(),
           "In a function: other workers no longer wait for this one, until it calls end_step again.")
      .def("restart", &UpdateGroup::restart, nb::call_guard<nb::gil_scoped_release>(),
           "On the coordinator, while no function of the group runs: all live workers take part again.")
      .def("__getstate__", [](const UpdateGroup& self) { return to_python(capstan::to_bytes(self)); })
      .def("__setstate__", [](UpdateGroup& self, const nb::bytes& state) {
        new (&self) UpdateGroup(from_bytes<UpdateGroup>(to_bytes(state)));
      });
  module.def(
      "stale_synchronous",
      [](const std::string& name, std::int64_t bound) { return UpdateGroup(name, StaleSynchronous{bound}); },
      "name"_a, "bound"_a);
  module.def(
      "synchronous",
      [](const std::string& name, bool average, int backup) {
        return UpdateGroup(name, Synchronous{average, backup});
      },
      "name"_a, "average"_a, "backup_workers"_a);

  nb::class_<Counter>(
      module, "Counter",
      "A 64-bit counter on a ps, from 0. Made in the scope of a strategy; an argument of functions.")
      .def(nb::init<std::string>(), "name"_a)
      .def("add", &Counter::add, "delta"_a = 1, nb::call_guard<nb::gil_scoped_release>(),
           "Add, as a push does: once, even if the function runs again after its worker died.")
      .def("fetch_add", &Counter::fetch_add, "delta"_a = 1, nb::call_guard<nb::gil_scoped_release>(),
           "Add immediately, and return the previous value.")
      .def("value", &Counter::value, nb::call_guard<nb::gil_scoped_release>(), "Return the value.")
      .def("__getstate__", [](const Counter& self) { return to_python(capstan::to_bytes(self)); })
      .def("__setstate__", [](Counter& self, const nb::bytes& state) {
        new (&self) Counter(from_bytes<Counter>(to_bytes(state)));
      });

  nb::class_<Pending>(module, "Pending")
      .def("ready", &Pending::ready)
      .def("wait", &Pending::wait, nb::call_guard<nb::gil_scoped_release>());

  nb::class_<RawVariable> variable(module, "RawVariable");
  variable
      .def(
          "__init__",
          [](RawVariable* self, const std::string& name, int dtype, const std::vector<std::int64_t>& shape,
             const Initializer* initializer, const std::optional<In>& values,
             const std::optional<Optimizer>& optimizer, bool trainable, int aggregation,
             const std::optional<UpdateGroup>& group, const std::optional<std::string>& memory,
             const std::optional<std::pair<std::uint32_t, std::uint32_t>>& combine_pushes,
             bool stochastic_rounding, bool int8_rows, std::optional<int> communication_dtype,
             std::optional<bool> int8_lookups) {
            detail::AnyInitialValue initial;
            if (initializer != nullptr) initial.initializer = *initializer;
            if (values) initial = value_of(*values, shape);
            VariableOptions options = options_of(optimizer, trainable, aggregation, group, memory);
            options.stochastic_rounding = stochastic_rounding;
            options.int8_rows = int8_rows;
            options.communication_dtype = dtype_of(communication_dtype);
            options.int8_lookups = int8_lookups;
            if (combine_pushes) options.combine_pushes = {combine_pushes->first, combine_pushes->second};
            const nb::gil_scoped_release unlocked;
            new (self) RawVariable(name, static_cast<DType>(dtype), Shape(shape), initial, options);
          },
          "name"_a, "dtype"_a, "shape"_a, "initializer"_a.none(), "values"_a.none(), "optimizer"_a.none(),
          "trainable"_a, "aggregation"_a, "group"_a.none(), "memory"_a.none(), "combine_pushes"_a.none(),
          "stochastic_rounding"_a, "int8_rows"_a, "communication_dtype"_a.none(), "int8_lookups"_a.none())
      .def("to_send",
           [](const RawVariable& self) {
             const auto sent = self.to_send();
             return nb::make_tuple(sent.id, sent.part);
           })
      .def_prop_ro("name", &RawVariable::name)
      .def_prop_ro("dtype", [](const RawVariable& self) { return static_cast<int>(self.dtype()); })
      .def_prop_ro("shape", [](const RawVariable& self) { return std::vector<std::int64_t>(self.shape()); })
      .def_prop_ro("trainable", &RawVariable::trainable)
      .def_prop_ro("skipped_rows", &RawVariable::skipped_rows)
      .def("set_learning_rate", &RawVariable::set_learning_rate, nb::call_guard<nb::gil_scoped_release>())
      .def("parts", &RawVariable::parts)
      .def("mapped", &mapped_bytes)
      .def("shards", [](const RawVariable& self) {
        std::vector<nb::tuple> all;
        for (const ShardInfo& shard : self.shards()) {
          all.push_back(nb::make_tuple(shard.name, shard.first_row, shard.rows, shard.ps));
        }
        return all;
      });
  module.def(
      "variable_of",
      [](std::uint32_t id, std::uint32_t part, int dtype) {
        return RawVariable(id, part, static_cast<DType>(dtype));
      },
      "id"_a, "part"_a, "dtype"_a, "Returns the variable that to_send described, on the rank of a closure.");
  module.def(
      "from_dlpack",
      [](nb::ndarray<nb::device::cpu> array) {
        const bool bfloat16 = array.dtype().code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat);
        std::vector<std::size_t> shape;
        std::vector<std::int64_t> strides;
        for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
          shape.push_back(array.shape(axis));
          strides.push_back(array.stride(axis));
        }
        const nb::dlpack::dtype dtype = bfloat16 ? nb::dtype<std::uint16_t>() : array.dtype();
        const nb::object owner = nb::cast(array);
        return nb::make_tuple(
            nb::ndarray<nb::numpy>(array.data(), shape.size(), shape.data(), owner, strides.data(), dtype),
            bfloat16);
      },
      "array"_a,
      "Returns a numpy array that shares the memory, with bfloat16 as uint16, and whether it is bfloat16.");
  module.def(
      "lookup_all_async",
      [](const std::vector<std::tuple<const RawVariable*, Ids, Out>>& lookups) {
        for (const auto& [variable, ids, out] : lookups) check_element(*variable, out);
        const nb::gil_scoped_release unlocked;
        return RawVariable::lookup_all_async(lookups);
      },
      nb::keep_alive<0, 1>(),  // rows arrive in the arrays until the Pending is destroyed
      "Starts a lookup of several variables with one round trip to each ps.");
  bind_reads_and_pushes(variable);
  bind_assignments(variable);
}

}  // namespace capstan::python
