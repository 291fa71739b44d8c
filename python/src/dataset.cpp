// dataset.cpp -- Dataset of Python objects: the pipelines of capstan/dataset.hpp.
//
// capstan/data.py defines the types of elements and batches.
#include "dataset.hpp"

namespace capstan::python {
namespace {

// Set once, when the package is imported; the interpreter never unloads it.
struct BatchHooks {
  PyObject* size = nullptr;    // (batch) -> number of examples
  PyObject* slice = nullptr;   // (batch, from, to) -> batch
  PyObject* append = nullptr;  // (batch, batch) -> batch
} batch_hooks;

/// Calls a Python function with one argument. Any thread.
Object call(const Object& function, const Object& argument) {
  return with_lock([&] { return function.get()(argument.get()); });
}

Objects from_generator(const nb::callable& make) {
  return Objects::from_generator([make = Object(nb::object(make))] {
    const Object iterator = with_lock([&] { return nb::iter(make.get()()); });
    return [iterator]() -> std::optional<Object> {
      const nb::gil_scoped_acquire locked;
      const nb::object next = nb::steal(PyIter_Next(iterator.get().ptr()));
      if (next.is_valid()) return Object(next);
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return std::nullopt;
    };
  });
}

Objects range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  return Dataset<std::int64_t>::range(start, stop, step).map([](std::int64_t number) {
    return with_lock([number] { return nb::int_(number); });
  });
}

/// Tuples of one element of each dataset.
Objects zipped(const std::vector<const Objects*>& datasets) {
  Objects tuples = datasets[0]->map(
      [](const Object& first) { return with_lock([&] { return nb::make_tuple(first.get()); }); });
  for (std::size_t i = 1; i < datasets.size(); ++i) {
    tuples = zip(tuples, *datasets[i]).map([](const std::pair<Object, Object>& both) {
      return with_lock([&] { return both.first.get() + nb::make_tuple(both.second.get()); });
    });
  }
  return tuples;
}

/// Converts each step to a tuple of the elements of this rank's replicas, in replica order.
Objects tuples_of(const DistributedDataset<Object>& dataset) {
  return dataset.steps().map([](const PerReplica<Object>& step) {
    return with_lock([&] {
      nb::list list;
      for (const Object& value : step) list.append(value.get());
      return nb::tuple(list);
    });
  });
}

/// An iterator that background threads may feed, until it is closed.
class ObjectIterator {
 public:
  explicit ObjectIterator(const Objects& dataset) : iterator_(dataset.make_iterator()) {}
  ~ObjectIterator() {
    const nb::gil_scoped_release unlocked;
    iterator_.reset();
  }

  nb::object next() {
    std::optional<Object> value;
    try {
      const nb::gil_scoped_release unlocked;
      value = get().try_next();
    } catch (nb::python_error& error) {
      // A pipeline may throw the same exception again, which nanobind restores only once.
      PyErr_SetObject(error.type().ptr(), error.value().ptr());
      throw nb::python_error();
    }
    if (!value) throw nb::stop_iteration();
    return nb::borrow(value->get());
  }
  nb::bytes position() { return to_python(get().position().bytes); }
  void restore(const nb::bytes& position) {
    const Position wanted{to_bytes(position)};
    const nb::gil_scoped_release unlocked;
    get().restore(wanted);
  }
  void close() {
    const nb::gil_scoped_release unlocked;
    iterator_.reset();
  }

 private:
  Iterator<Object>& get() {
    if (!iterator_) throw Error(Code::failed_precondition, "this iterator is closed");
    return *iterator_;
  }
  std::optional<Iterator<Object>> iterator_;
};

void bind_operators(nb::class_<Objects>& dataset) {
  using nb::literals::operator""_a;
  dataset
      .def(
          "map",
          [](const Objects& self, const nb::callable& function, int threads, int ahead) {
            const auto apply = [function = Object(nb::object(function))](const Object& element) {
              return call(function, element);
            };
            return self.map(apply, MapOptions{threads, ahead});
          },
          "function"_a, "threads"_a = 0, "ahead"_a = 0)
      .def("filter",
           [](const Objects& self, const nb::callable& keep) {
             return self.filter([keep = Object(nb::object(keep))](const Object& element) {
               const nb::gil_scoped_acquire locked;
               const int yes = PyObject_IsTrue(nb::object(keep.get()(element.get())).ptr());
               if (yes < 0) throw nb::python_error();
               return yes == 1;
             });
           })
      .def("take", &Objects::take)
      .def("skip", &Objects::skip)
      .def("shard", &Objects::shard)
      .def(
          "batch",
          [](const Objects& self, std::int64_t size, const nb::callable& combine, bool drop_remainder) {
            const auto stack = [combine = Object(nb::object(combine))](const std::vector<Object>& elements) {
              return with_lock([&] {
                nb::list list;
                for (const Object& element : elements) list.append(element.get());
                return combine.get()(list);
              });
            };
            return self.batch_as(size, stack, drop_remainder);
          },
          "size"_a, "combine"_a, "drop_remainder"_a)
      .def("rebatch", &Objects::rebatch, "sizes"_a, "drop_remainder"_a = false)
      .def(
          "shuffle",
          [](const Objects& self, std::int64_t buffer, std::optional<std::uint64_t> seed, bool reshuffle) {
            return self.shuffle(buffer, ShuffleOptions{seed, reshuffle});
          },
          "buffer"_a, "seed"_a.none(), "reshuffle_each_iteration"_a)
      .def("repeat", &Objects::repeat)
      .def("concatenate", &Objects::concatenate)
      .def(
          "interleave",
          [](const Objects& self, const nb::callable& make, std::int64_t cycle, std::int64_t block) {
            return self.interleave(
                [make = Object(nb::object(make))](const Object& element) {
                  const nb::gil_scoped_acquire locked;
                  return nb::cast<Objects>(nb::object(make.get()(element.get())));
                },
                cycle, block);
          },
          "make"_a, "cycle"_a, "block"_a)
      .def("prefetch", &Objects::prefetch)
      .def("cache", &Objects::cache)
      .def("count", &Objects::count, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "distribute",
          [](const Objects& self, std::int64_t ahead) {
            return tuples_of(get_strategy().distribute_dataset(self, {.per_replica_buffer_size = ahead}));
          },
          "ahead"_a);
}

}  // namespace
}  // namespace capstan::python

namespace capstan {

using python::batch_hooks;
namespace nb = nanobind;

std::int64_t BatchOf<python::Object>::size(const python::Object& batch) {
  const nb::gil_scoped_acquire locked;
  return nb::cast<std::int64_t>(nb::handle(batch_hooks.size)(batch.get()));
}
python::Object BatchOf<python::Object>::slice(const python::Object& batch, std::int64_t from,
                                              std::int64_t to) {
  return python::with_lock([&] { return nb::handle(batch_hooks.slice)(batch.get(), from, to); });
}
void BatchOf<python::Object>::append(python::Object& batch, const python::Object& part) {
  batch = python::with_lock([&] { return nb::handle(batch_hooks.append)(batch.get(), part.get()); });
}

}  // namespace capstan

namespace capstan::python {

void bind_dataset(nb::module_& module) {
  using nb::literals::operator""_a;
  module.def(
      "set_batch_hooks",
      [](nb::object size, nb::object slice, nb::object append) {
        batch_hooks = {size.release().ptr(), slice.release().ptr(), append.release().ptr()};
      },
      "Sets the functions of capstan/data.py that divide and join batches.");
  nb::class_<Objects> dataset(module, "Dataset");
  bind_operators(dataset);
  nb::class_<ObjectIterator>(module, "DatasetIterator")
      .def(nb::init<const Objects&>(), "dataset"_a)
      .def("next", &ObjectIterator::next)
      .def("position", &ObjectIterator::position)
      .def("restore", &ObjectIterator::restore)
      .def("close", &ObjectIterator::close);
  module.def("dataset_range", &range, "start"_a, "stop"_a, "step"_a);
  module.def("dataset_from_generator", &from_generator, "make"_a);
  module.def("dataset_zip", &zipped, "datasets"_a);
  module.def(
      "distribute_from_function",
      [](const nb::callable& make, bool per_replica, std::int64_t ahead) {
        const auto made = [&make](const InputContext& context) {
          return nb::cast<Objects>(
              make(context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync));
        };
        InputOptions options;
        options.per_replica_buffer_size = ahead;
        if (per_replica) options.replication_mode = InputReplicationMode::per_replica;
        return tuples_of(get_strategy().distribute_datasets_from_function(made, options));
      },
      "make"_a, "per_replica"_a, "ahead"_a);
}

}  // namespace capstan::python
