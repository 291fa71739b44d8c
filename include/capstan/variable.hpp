// variable.hpp -- variables on the ps: pull, lookup, push, flush, assignments.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "capstan/array.hpp"
#include "capstan/buffer.hpp"
#include "capstan/counter.hpp"
#include "capstan/detail/const_span.hpp"
#include "capstan/detail/slice.hpp"
#include "capstan/dtype.hpp"
#include "capstan/initializers.hpp"
#include "capstan/row_access.hpp"
#include "capstan/serialize.hpp"
#include "capstan/variable_options.hpp"

namespace capstan {

/// The rows of a shard in the memory of its ps; see Variable::mapped.
template <class T>
struct MappedRows {
  std::shared_ptr<const Element<T>> values;  ///< row-major
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  std::span<const Element<T>> operator[](std::size_t row) const {
    return {values.get() + row * width, width};
  }
  std::size_t size() const { return rows; }
};

/// A variable of any rank, of float, double, float16, bfloat16, std::int32_t, std::int64_t or bool (stored as
/// bytes of 0 and 1). Made on the coordinator, after Cluster::join: in the scope of a strategy it is created
/// on the ps, shard by shard, and may be passed to closures as an argument; outside of a scope it stays in
/// the coordinator's process. Used by the thread that runs the program or the closure.
///
/// Values are row-major. Reads are relaxed unless ReadMode::consistent is given. Every call throws Error:
/// out_of_range for a row that does not exist, invalid_argument for values that do not match the rows or the
/// dtype (both before anything is sent), unavailable naming a dead ps, deadline_exceeded.
template <class T>
class Variable : public RowAccess<T> {
 public:
  using element_type = Element<T>;
  using RowAccess<T>::lookup;
  using RowAccess<T>::push;

  /// `Variable<float>("v", Shape{3, 4})`: zeros, unless `initial` is given. Throws Error: failed_precondition
  /// on a rank other than the coordinator; invalid_argument for a size below 0, values of another shape,
  /// parameters of the optimizer or initializer that are out of range, and a name that is not valid in
  /// checkpoints (docs/checkpoint_format.md#names); already_exists for a name that is taken.
  template <std::same_as<Shape> S>
  Variable(std::string name, const S& shape, const InitialValue<T>& initial = {},
           const VariableOptions& options = {})
      : RowAccess<T>(std::move(name), dtype_of<T>, &shape, initial.any(), options) {}
  /// `Variable("v", 1.0F)`: with the initial value's shape. A number makes a scalar; a vector or span, a
  /// variable of rank 1; an Array, or a function that returns one, a variable of its shape.
  template <std::convertible_to<InitialValue<T>> Value>
  Variable(std::string name, Value initial, const VariableOptions& options = {})
      : RowAccess<T>(std::move(name), dtype_of<T>, nullptr, InitialValue<T>(std::move(initial)).any(),
                     options) {}
  /// `Variable<float>("v", {1, 2, 3})`: a variable of rank 1 with these values.
  Variable(std::string name, std::initializer_list<T> values, const VariableOptions& options = {})
      : RowAccess<T>(std::move(name), dtype_of<T>, nullptr, InitialValue<T>(values).any(), options) {}
  /// `Variable<float>("v", {{1, 2}, {3, 4}})`: the rows of a matrix. `{}` and rows of one value are
  /// ambiguous: write `Shape{0}`, or `Shape{2, 1}, {1, 2}`. Throws Error(invalid_argument) for rows of
  /// different lengths.
  Variable(std::string name, std::initializer_list<std::initializer_list<T>> rows,
           const VariableOptions& options = {})
      : RowAccess<T>(std::move(name), dtype_of<T>, nullptr, InitialValue<T>(rows).any(), options) {}
  Variable(std::string name, std::initializer_list<std::int64_t> sizes, const InitialValue<T>& initial,
           const VariableOptions& options = {}) = delete;  // shapes are written Shape{...}

  /// Returns the variable of that name in the scope, or nullopt if there is none; get_variable
  /// (capstan/detail/get_variable.hpp) can also create it. Throws Error(invalid_argument) for a variable of
  /// another dtype.
  static std::optional<Variable> find(const std::string& name) {
    auto bound = AnyVariable::find(name, dtype_of<T>);
    return bound == nullptr ? std::nullopt : std::optional(Variable(std::move(bound)));
  }

  /// Returns one variable per shard, with only the shard's rows: row 0 of "w/part_1" is the first row of
  /// shard 1. These variables share their values with this variable, and can be read, changed and passed to
  /// closures like any other. For a variable with one shard, returns the variable itself.
  std::vector<Variable> variables() const {
    std::vector<Variable> variables;
    for (auto& bound : this->bound_shards()) variables.push_back(Variable(std::move(bound)));
    return variables;
  }

  /// Returns a handle to the same variable whose reads are exact, whatever its communication_dtype and
  /// int8_lookups. Push to the variable itself, and pass the variable itself to closures.
  Variable exact() const { return Variable(this->bound_exactly()); }

  /// Returns the complete variable: the shards in order. In a CachingScope, returns the result of the first
  /// complete read in the scope.
  Buffer<element_type> pull() const {
    Buffer<element_type> values(this->rows() * this->width());
    AnyVariable::pull_complete(values.data(), values.size());
    return values;
  }
  /// pull() as an array of the variable's shape.
  Array<T> read() const {
    Array<T> array(this->shape());
    AnyVariable::pull_complete(array.values.data(), array.values.size());
    return array;
  }
  /// Calls read() where an Array is expected. Variables are also operands of arithmetic and comparisons
  /// (capstan/array.hpp).
  operator Array<T>() const { return read(); }  // NOLINT(google-explicit-constructor)
  /// Python's v[...]: v.at(Slice{.start = 2}, ellipsis, -1). Reads only the rows that it needs; see
  /// read_slice.
  template <std::convertible_to<Index>... I>
  Array<T> at(const I&... indices) const {
    return read_slice(*this, indices...);
  }
  /// Reads rows from `first_row` on until `out` is full; its size must be a multiple of width().
  void pull(std::uint64_t first_row, std::span<element_type> out, ReadMode mode = ReadMode::relaxed) const {
    AnyVariable::pull(first_row, out.data(), out.size(), mode);
  }
  /// Returns the rows without a copy, in the memory of a ps of this host. The ps changes them while it
  /// applies pushes, so a read is relaxed. The memory stays mapped while `values` or a copy of it lives. Once
  /// the ps's memory is lost (docs/failures.md), the values no longer change; a restarted coordinator may
  /// reset them to zero. Throws Error(failed_precondition) for a variable with several shards (call it for
  /// each of variables()), for one with int8_rows, and for a shard on another host, on a GPU, or under
  /// --window=rma.
  MappedRows<T> mapped() const {
    auto memory = this->mapped_memory();
    const auto* values = reinterpret_cast<const element_type*>(memory.get());
    return {std::shared_ptr<const element_type>(std::move(memory), values), this->rows(), this->width()};
  }
  /// Starts a pull and returns; `out` as in lookup_async.
  [[nodiscard]] Pending pull_async(std::uint64_t first_row, std::span<element_type> out) const {
    return AnyVariable::pull_async(first_row, out.data(), out.size());
  }

  /// Sends a gradient of every element; otherwise as push.
  void push_dense(ConstSpan<element_type> gradient) const {
    AnyVariable::push_dense(gradient.data(), gradient.size());
  }
  /// As push_dense; see push_async.
  [[nodiscard]] Pending push_dense_async(ConstSpan<element_type> gradient) const {
    push_dense(gradient);
    return this->pushed();
  }

  // The same calls with GPU memory, in stream order: work enqueued after a read sees the rows, and a push
  // sends the results of earlier work. `ids` and the gradient may be reused on return; `out` is complete when
  // the stream reaches that point. Rows are staged in pinned memory in pieces, and the copy of one piece
  // overlaps with the transfer of the next. Relaxed pulls and dense pushes bypass staging if all shards of
  // the variable are reached through an adapter, and UCX supports it (--gpu-transfer).
  void lookup(const DeviceStream& stream, std::span<const std::int64_t> ids, DeviceSpan<element_type> out,
              ReadMode mode = ReadMode::relaxed) const {
    AnyVariable::lookup_to_gpu(stream, ids, out.data(), out.size(), mode);
  }
  void pull(const DeviceStream& stream, std::uint64_t first_row, DeviceSpan<element_type> out,
            ReadMode mode = ReadMode::relaxed) const {
    AnyVariable::pull_to_gpu(stream, first_row, out.data(), out.size(), mode);
  }
  void push(const DeviceStream& stream, std::span<const std::int64_t> ids,
            DeviceSpan<const element_type> gradient) const {
    AnyVariable::push_from_gpu(stream, ids, gradient.data(), gradient.size());
  }
  void push_dense(const DeviceStream& stream, DeviceSpan<const element_type> gradient) const {
    AnyVariable::push_dense_from_gpu(stream, gradient.data(), gradient.size());
  }

  // Assignments and scatter operations change values on the ps, bypassing the optimizer and its slots, after
  // this rank's earlier pushes. They block until applied and return the variable. Each shard is changed
  // atomically (see ReadMode::consistent), one shard after another. Replicas that call them inside run wait
  // for each other, and the variable's aggregation combines their values: VariableAggregation defines how,
  // and the errors.

  /// Sets every element. Throws Error(invalid_argument) unless there is one value per element.
  const Variable& assign(ConstSpan<element_type> values) const { return all(Op::set, values); }
  /// Sets rows from `first_row` on, as many as `values` fills.
  const Variable& assign(ConstSpan<element_type> values, std::uint64_t first_row) const {
    this->update(Op::set, first_row, values.data(), values.size());
    return *this;
  }
  /// Adds element i of `values` to element i, for all elements.
  const Variable& assign_add(ConstSpan<element_type> values) const { return all(Op::add, values); }
  const Variable& assign_sub(ConstSpan<element_type> values) const { return all(Op::sub, values); }

  /// Adds row i of `values` to row ids[i]; a repeated id is changed repeatedly, in that order. The other
  /// scatter operations work alike.
  const Variable& scatter_add(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::add, ids, values);
  }
  const Variable& scatter_sub(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::sub, ids, values);
  }
  const Variable& scatter_mul(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::mul, ids, values);
  }
  /// Integer division truncates towards zero; division by 0 is Error(invalid_argument).
  const Variable& scatter_div(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::div, ids, values);
  }
  const Variable& scatter_min(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::min, ids, values);
  }
  const Variable& scatter_max(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::max, ids, values);
  }
  const Variable& scatter_update(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::set, ids, values);
  }
  /// As scatter_update: the variable's first axis is the indexed one.
  const Variable& batch_scatter_update(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::set, ids, values);
  }

 private:
  friend struct Serializer<Variable<T>>;
  using Op = AnyVariable::Op;
  Variable() = default;
  explicit Variable(std::shared_ptr<const strategy::BoundVariable> bound) : RowAccess<T>(std::move(bound)) {}

  const Variable& all(Op op, std::span<const element_type> values) const {
    this->update_all(op, values.data(), values.size());
    return *this;
  }
  const Variable& some(Op op, std::span<const std::int64_t> ids, std::span<const element_type> values) const {
    this->scatter(op, ids, values.data(), values.size());
    return *this;
  }
};

template <class V>
Variable(std::string, V, VariableOptions = {}) -> Variable<ValueTypeOf<V>>;
template <class T>
Variable(std::string, std::initializer_list<T>, VariableOptions = {}) -> Variable<T>;
template <class T>
Variable(std::string, std::initializer_list<std::initializer_list<T>>, VariableOptions = {}) -> Variable<T>;

/// A variable is serialized as its number; the receiving rank binds it to its own connections.
template <class T>
struct Serializer<Variable<T>> {
  static void write(Writer& out, const Variable<T>& variable) { capstan::write(out, variable.to_send()); }
  static Variable<T> read(Reader& in) {
    Variable<T> variable;
    variable.bind(capstan::read<typename Variable<T>::Sent>(in), dtype_of<T>);
    return variable;
  }
};

}  // namespace capstan
