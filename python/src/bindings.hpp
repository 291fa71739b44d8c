// bindings.hpp -- declarations shared by the sources of the extension module capstan._capstan.
//
// The module is a thin layer on the public C++ API: it takes bytes, numbers and contiguous arrays. The Python
// files of the package convert arguments, and define what a user sees.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/chrono.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capstan/capstan.hpp"

namespace capstan::python {

namespace nb = nanobind;

/// Row numbers.
using Ids = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
/// Values of a variable's dtype, row-major. The Python files view bfloat16 as uint16.
using In = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<nb::c_contig, nb::device::cpu>;

using Bytes = std::vector<std::byte>;
Bytes to_bytes(const nb::bytes& bytes);
nb::bytes to_python(const Bytes& bytes);

/// Numbers of dtypes are those of DType.
inline std::optional<DType> dtype_of(std::optional<int> number) {
  return number ? std::optional(static_cast<DType>(*number)) : std::nullopt;
}

/// Moves a std::vector or Buffer into a numpy array of this shape. REQUIRES: the interpreter's lock.
template <class Values>
auto array_of(Values values, const Shape& shape) {
  using T = typename Values::value_type;
  auto owned = std::make_unique<Values>(std::move(values));
  T* data = owned->data();
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  const nb::capsule owner(owned.get(), [](void* held) noexcept { delete static_cast<Values*>(held); });
  (void)owned.release();
  return nb::ndarray<nb::numpy, T>(data, sizes.size(), sizes.data(), owner);
}
template <class Values>
auto array_of(Values values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return array_of(std::move(values), shape);
}

/// Calls `wait(interval)` without the interpreter's lock until it returns true. Runs signal handlers between
/// the calls, so that Ctrl-C raises KeyboardInterrupt.
template <class Wait>
void wait_interruptibly(const Wait& wait) {
  constexpr std::chrono::milliseconds kInterval{100};
  for (bool done = false; !done;) {
    {
      const nb::gil_scoped_release unlocked;
      done = wait(kInterval);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

/// A strategy that ends when it is closed, even while Python objects still refer to this one.
class Strategy {
 public:
  Strategy(const Cluster& cluster, StrategyOptions options)
      : strategy_(std::in_place, cluster, std::move(options)) {}
  ~Strategy();

  /// Throws Error(failed_precondition) once the strategy is closed.
  ParameterServerStrategy& get();
  ClusterCoordinator& coordinator();
  bool is_open() const noexcept { return strategy_.has_value(); }
  void open_scope();
  void close_scope();
  /// Ends the job. Objects made with the strategy cannot be used afterwards.
  void close();

 private:
  std::optional<ParameterServerStrategy> strategy_;
  std::optional<ClusterCoordinator> coordinator_;
  std::vector<std::unique_ptr<ParameterServerStrategy::Scope>> scopes_;
};

void bind_errors(nb::module_& module);
void bind_cluster(nb::module_& module);
void bind_options(nb::module_& module);
void bind_variable(nb::module_& module);
void bind_table(nb::module_& module);
void bind_strategy(nb::module_& module);
void bind_coordinator(nb::module_& module);
void bind_checkpoint(nb::module_& module);
void bind_replicas(nb::module_& module);
void bind_dataset(nb::module_& module);
void bind_readers(nb::module_& module);
void bind_metrics(nb::module_& module);
void bind_resolvers(nb::module_& module);

}  // namespace capstan::python
