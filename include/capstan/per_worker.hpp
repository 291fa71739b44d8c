// per_worker.hpp -- PerWorkerVariable: a variable of which each worker has a copy of its own.
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

/// What a worker makes its copy from.
struct CopyRecipe {
  std::string name;
  Shape shape;
  DType dtype{};
  Initializer initializer;
  std::uint32_t fill = 0;
  std::vector<std::byte> values;  // in place of an initializer, when there are any
};
/// `shape` is null when the initial value has one. Throws Error(invalid_argument) for what does not fit.
CAPSTAN_API CopyRecipe copy_recipe(const std::string& name, DType dtype, const Shape* shape,
                                   const AnyInitialValue& initial);
/// The first values, into an array of the recipe's shape and dtype.
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

/// An array on every worker, in the worker's process: a metric's sums, a random state, a buffer. The copies
/// know nothing of each other; no ps has a part in them and no checkpoint holds them. Made on the coordinator
/// in a strategy's scope, passed to closures, where it is the copy of the worker that runs the closure. A
/// copy begins with the initial value when a closure first uses it there, and is lost with its worker. The
/// copies are freed when the last handle on the coordinator is destroyed, as those of a PerWorker are.
///
/// On the coordinator there is no copy: read, assign and the like throw Error(failed_precondition) there, and
/// read_all gathers. Used by one closure at a time; replica threads of a closure must not write to it
/// together.
template <class T>
class PerWorkerVariable {
 public:
  using value_type = T;
  using element_type = Element<T>;

  /// Throws Error: failed_precondition outside of a scope; invalid_argument for a size below 0, or values
  /// of another shape. A function as initial value is called here, one that fills partitions on
  /// each worker, with the whole as its only partition.
  template <std::same_as<Shape> S>
  PerWorkerVariable(std::string name, const S& shape, const InitialValue<T>& initial = {})
      : PerWorkerVariable(detail::copy_recipe(name, dtype_of<T>, &shape, initial.any())) {}
  /// Of the initial value's shape, as a Variable.
  template <std::convertible_to<InitialValue<T>> Value>
  PerWorkerVariable(std::string name, Value initial)
      : PerWorkerVariable(
            detail::copy_recipe(name, dtype_of<T>, nullptr, InitialValue<T>(std::move(initial)).any())) {}
  PerWorkerVariable(std::string name, std::initializer_list<T> values)
      : PerWorkerVariable(detail::copy_recipe(name, dtype_of<T>, nullptr, InitialValue<T>(values).any())) {}
  /// The rows of a matrix, of two values or more. Throws Error(invalid_argument) for rows of different
  /// lengths.
  PerWorkerVariable(std::string name, std::initializer_list<std::initializer_list<T>> rows)
      : PerWorkerVariable(detail::copy_recipe(name, dtype_of<T>, nullptr, InitialValue<T>(rows).any())) {}

  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  static constexpr DType dtype() { return dtype_of<T>; }

  // In a closure, on the worker's own copy:

  Array<T> read() const { return own(); }
  /// In place. Until the closure ends.
  std::span<element_type> values() const { return own().values; }
  /// A value for every element, row-major.
  const PerWorkerVariable& assign(ConstSpan<element_type> values) const {
    each(values, "assign", [](element_type, element_type given) { return given; });
    return *this;
  }
  const PerWorkerVariable& assign_add(ConstSpan<element_type> values) const
      requires(!std::is_same_v<T, bool>) {
    each(values, "assign_add", [](element_type a, element_type b) { return plus(a, b, false); });
    return *this;
  }
  const PerWorkerVariable& assign_sub(ConstSpan<element_type> values) const
      requires(!std::is_same_v<T, bool>) {
    each(values, "assign_sub", [](element_type a, element_type b) { return plus(a, b, true); });
    return *this;
  }

  // On the coordinator:

  /// Each worker's copy, in the order of coordinator.worker_indices(): workers that have died are left out,
  /// their copies are lost. Waits behind what the workers are running; after join() it is what all closures
  /// together have left.
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
  void each(std::span<const element_type> given, const char* call, const Combine& combine) const {
    auto& mine = own().values;
    if (given.size() != mine.size()) {
      throw Error(Code::invalid_argument, std::string(call) + " of per-worker variable \"" + name_ +
                                              "\" of shape " + to_string(shape_) + ": it has " +
                                              std::to_string(mine.size()) + " elements, " +
                                              std::to_string(given.size()) + " were given");
    }
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = combine(mine[i], given[i]);
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
