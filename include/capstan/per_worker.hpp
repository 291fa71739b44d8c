// per_worker.hpp -- PerWorkerVariable: a variable with an independent copy on each worker.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/detail/const_span.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/detail/per_worker.hpp"
#include "capstan/dtype.hpp"
#include "capstan/initializers.hpp"

namespace capstan {

template <class T>
class PerWorkerVariable;

namespace detail {

/// Description from which a worker creates its copy.
struct CopyRecipe {
  std::string name;
  Shape shape;
  DType dtype{};
  Initializer initializer;
  std::uint32_t fill = 0;
  std::vector<std::byte> values;  // override the initializer unless empty
};
/// `shape` is null if the initial value determines it. Throws Error(invalid_argument) for a shape and an
/// initial value that do not match.
CAPSTAN_API CopyRecipe copy_recipe(const std::string& name, DType dtype, const Shape* shape,
                                   const AnyInitialValue& initial);
/// Writes the initial values to an array of the recipe's shape and dtype.
CAPSTAN_API void fill_copy(const CopyRecipe& recipe, void* out);

template <class T>
class PerWorkerCopy {
 public:
  explicit PerWorkerCopy(const CopyRecipe& recipe) : name(recipe.name), array(recipe.shape) {
    fill_copy(recipe, array.values.data());
  }
  std::string name;
  Array<T> array;
};

template <class T>
PerWorkerCopy<T> make_copy(const CopyRecipe& recipe) {
  return PerWorkerCopy<T>(recipe);
}
template <class T>
Array<T> read_copy(const PerWorkerVariable<T>& variable);

}  // namespace detail

/// An array in every worker's process, such as a metric's sums, a random state or a buffer. The copies are
/// independent; they are neither on a ps nor in checkpoints. Made on the coordinator in a strategy's scope
/// and passed to closures, where it denotes the copy of the worker that runs the closure. A copy is created
/// from the initial value when a closure first uses it on that worker, and is lost with the worker. The
/// copies are freed when the last handle on the coordinator is destroyed, as for PerWorker.
///
/// The coordinator has no copy: read, assign and the like throw Error(failed_precondition) there; read_all
/// gathers the workers' copies. Used by one closure at a time; a closure's replica threads must not write to
/// it concurrently.
template <class T>
class PerWorkerVariable {
 public:
  using value_type = T;
  using element_type = Element<T>;

  /// Throws Error: failed_precondition outside of a scope; invalid_argument for a size below 0 or values of
  /// another shape. If the initial value is a function that returns an array, it is called here. A function
  /// that fills partitions is called on each worker, with the complete variable as the only partition.
  template <std::same_as<Shape> S>
  PerWorkerVariable(std::string name, const S& shape, const InitialValue<T>& initial = {})
      : PerWorkerVariable(detail::copy_recipe(name, dtype_of<T>, &shape, initial.any())) {}
  /// With the initial value's shape, as for Variable.
  template <std::convertible_to<InitialValue<T>> Value>
  PerWorkerVariable(std::string name, Value initial)
      : PerWorkerVariable(
            detail::copy_recipe(name, dtype_of<T>, nullptr, InitialValue<T>(std::move(initial)).any())) {}
  PerWorkerVariable(std::string name, std::initializer_list<T> values)
      : PerWorkerVariable(detail::copy_recipe(name, dtype_of<T>, nullptr, InitialValue<T>(values).any())) {}
  /// The rows of a matrix, of at least two values each. Throws Error(invalid_argument) for rows of different
  /// lengths.
  PerWorkerVariable(std::string name, std::initializer_list<std::initializer_list<T>> rows)
      : PerWorkerVariable(detail::copy_recipe(name, dtype_of<T>, nullptr, InitialValue<T>(rows).any())) {}

  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  static constexpr DType dtype() { return dtype_of<T>; }

  // In a closure, for the worker's own copy:

  Array<T> read() const { return own(); }
  /// The elements in place; valid until the closure ends.
  std::span<element_type> values() const { return own().values; }
  /// Sets every element from row-major values. Throws Error(invalid_argument) for another number of values.
  const PerWorkerVariable& assign(ConstSpan<element_type> values) const {
    combine_each(values, "assign", [](element_type, element_type given) { return given; });
    return *this;
  }
  const PerWorkerVariable& assign_add(ConstSpan<element_type> values) const
      requires(!std::is_same_v<T, bool>) {
    combine_each(values, "assign_add", [](element_type a, element_type b) { return plus(a, b, false); });
    return *this;
  }
  const PerWorkerVariable& assign_sub(ConstSpan<element_type> values) const
      requires(!std::is_same_v<T, bool>) {
    combine_each(values, "assign_sub", [](element_type a, element_type b) { return plus(a, b, true); });
    return *this;
  }

  // On the coordinator:

  /// Returns the copies of all live workers, in the order of coordinator.worker_indices(); copies of dead
  /// workers are lost. Waits until the workers have finished their current closures; after join(), the copies
  /// include the effects of all closures.
  std::vector<Array<T>> read_all(ClusterCoordinator& coordinator) const {
    return coordinator.run_on_every_worker<&detail::read_copy<T>>(*this);
  }

 private:
  friend struct Serializer<PerWorkerVariable<T>>;
  PerWorkerVariable() = default;
  explicit PerWorkerVariable(detail::CopyRecipe recipe)
      : handle_(detail::add_worker_resource("per-worker variable", recipe.name,
                                            detail::RegisteredMaker<&detail::make_copy<T>>::number,
                                            detail::pack_arguments<&detail::make_copy<T>>(recipe))),
        name_(std::move(recipe.name)),
        shape_(std::move(recipe.shape)) {}

  static element_type plus(element_type a, element_type b, bool minus) {
    using Wide = std::conditional_t<std::is_arithmetic_v<element_type>, element_type, float>;
    const auto x = static_cast<Wide>(a), y = static_cast<Wide>(b);
    return static_cast<element_type>(minus ? x - y : x + y);
  }
  Array<T>& own() const {
    if (copy_ == nullptr) {
      throw Error(Code::failed_precondition, "per-worker variable \"" + name_ +
                                                 "\" has a copy on each worker and none on the coordinator: "
                                                 "use it in scheduled functions, or gather with read_all");
    }
    return copy_->array;
  }
  template <class Combine>
  void combine_each(std::span<const element_type> given, const char* call, const Combine& combine) const {
    auto& elements = own().values;
    if (given.size() != elements.size()) {
      throw Error(Code::invalid_argument, std::string(call) + " of per-worker variable \"" + name_ +
                                              "\" of shape " + to_string(shape_) + ": found " +
                                              std::to_string(given.size()) + " values, expected " +
                                              std::to_string(elements.size()));
    }
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = combine(elements[i], given[i]);
  }

  detail::ResourceHandle handle_;
  std::string name_;
  Shape shape_;
  std::shared_ptr<detail::PerWorkerCopy<T>> copy_;
};

template <class T>
struct Serializer<PerWorkerVariable<T>> {
  static void write(Writer& out, const PerWorkerVariable<T>& variable) {
    capstan::write(out, variable.handle_);
  }
  static PerWorkerVariable<T> read(Reader& in) {
    PerWorkerVariable<T> variable;
    variable.handle_ = capstan::read<detail::ResourceHandle>(in);
    variable.copy_ =
        std::static_pointer_cast<detail::PerWorkerCopy<T>>(detail::worker_resource(variable.handle_));
    variable.name_ = variable.copy_->name;
    variable.shape_ = variable.copy_->array.shape;
    return variable;
  }
};

template <class T>
Array<T> detail::read_copy(const PerWorkerVariable<T>& variable) {
  return variable.read();
}

}  // namespace capstan
