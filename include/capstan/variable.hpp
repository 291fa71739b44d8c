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
#include <vector>

#include "capstan/array.hpp"
#include "capstan/detail/const_span.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/detail/slice.hpp"
#include "capstan/device.hpp"
#include "capstan/dtype.hpp"
#include "capstan/initializers.hpp"
#include "capstan/serialize.hpp"
#include "capstan/variable_options.hpp"

namespace capstan {

namespace strategy {
struct BoundVariable;
class Context;
class PendingCall;
}  // namespace strategy

/// A copy of some rows of a variable: row i is `[i * width, (i + 1) * width)` of `values`.
template <class T>
struct Rows {
  std::vector<Element<T>> values;
  std::uint64_t width = 0;
  std::span<const Element<T>> operator[](std::size_t row) const {
    return {values.data() + row * width, width};
  }
  std::size_t size() const { return width == 0 ? 0 : values.size() / width; }
};

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

/// A gradient of some rows: row i of `values` belongs to row ids[i] of the variable. Ids may repeat.
template <class T>
struct IndexedSlices {
  std::vector<std::int64_t> ids;
  std::vector<Element<T>> values;
};

/// Consistency of a read with concurrent pushes.
enum class ReadMode : std::uint8_t {
  /// Elements are never torn, but a row may mix elements from before and after an update.
  relaxed,
  /// The rows of one shard are read between two pushes. Costs a second read of the shard's version; if pushes
  /// leave no pause, the ps holds further ones back and serves the read.
  consistent,
};

/// A read or a push in flight. Used by the thread that started it. The `out` of a read must live until `wait`
/// has returned or this object is destroyed.
class CAPSTAN_API Pending {
 public:
  Pending();
  Pending(Pending&& other) noexcept;
  Pending& operator=(Pending&& other) noexcept;
  /// Cancels a read in flight. A push is applied nevertheless.
  ~Pending();

  /// Returns true once the rows have been read, the ps have applied the push, or `wait` would throw. Does not
  /// block; for a push to a ps that is reached by RMA, reads one word of the ps's memory.
  bool ready() const;
  /// Blocks until the rows have been read, or the ps have applied the push; a push to a variable of a
  /// synchronous update group counts as applied when the ps holds it for the end of the step. Throws Error:
  /// unavailable, deadline_exceeded, aborted (this rank counts as dead), cancelled. After an error, a push
  /// may be waited for again; a read is cancelled.
  void wait();

 private:
  friend class AnyVariable;
  explicit Pending(std::unique_ptr<strategy::PendingCall> call);
  std::unique_ptr<strategy::PendingCall> call_;  // null once it has ended
};

template <class T>
struct Lookup;
template <class T>
struct Push;

/// Rows and location of a shard.
struct ShardInfo {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  int ps = 0;        ///< index among the ps
  std::string name;  ///< "w/part_0"; "w" for the only shard
};

/// Base of all variables, whatever their dtype. A handle: copies refer to the same variable.
class CAPSTAN_API AnyVariable {
 public:
  const std::string& name() const;
  DType dtype() const;
  Shape shape() const;
  /// Size along axis 0; 1 for a scalar. For a dynamic table, the number of rows for which the ps reserve
  /// addresses.
  std::uint64_t rows() const;
  /// Elements in a row.
  std::uint64_t width() const;
  /// The shards by first row, divided by the "div" rule: 10 rows in 4 shards are 3, 3, 2, 2.
  /// Variable::variables() returns them as variables.
  std::vector<ShardInfo> shards() const;
  bool trainable() const;
  VariableAggregation aggregation() const;
  VariableSynchronization synchronization() const;
  /// Returns true for a variable created outside of a strategy's scope, in the coordinator's process.
  bool on_coordinator() const;
  /// Blocks until all pushes that this rank has made so far, to any variable, have been applied. Throws
  /// Error: unavailable naming a dead ps, deadline_exceeded, aborted (this rank counts as dead), cancelled.
  void flush() const;
  /// Sets the optimizer's learning rate, replacing the rate or schedule given at creation. Each ps applies it
  /// after this rank's earlier pushes; after it returns, it holds for every push that any rank starts. For a
  /// synchronous update group, it also holds for the step in progress. Checkpoints store it; a restore sets
  /// the stored rate, or else the rate given at creation, as does a spare that replaces a ps. In a closure
  /// that runs again, it takes effect once. Throws Error(invalid_argument) for a rate with which the variable
  /// could not be created, and the errors of other calls.
  void set_learning_rate(double rate) const;
  /// Number of gradient rows that this rank has skipped because of NaN or infinity: --nan-gradients=skip.
  std::uint64_t skipped_rows() const;

  /// Internal: for the layers above, not for programs.
  const std::shared_ptr<const strategy::BoundVariable>& bound() const noexcept { return bound_; }

 protected:
  template <class... T>
  friend Pending lookup_all_async(const Lookup<T>&... lookups);
  template <class... T>
  friend void push_all(const Push<T>&... pushes);
  template <class T>
  friend void push_all(std::span<const Push<T>> pushes);

  /// Row operations; the values are those of protocol::RowOp.
  enum class Op : std::uint32_t { set = 1, add, sub, mul, div, min, max };

  AnyVariable() = default;
  explicit AnyVariable(std::shared_ptr<const strategy::BoundVariable> bound) : bound_(std::move(bound)) {}
  AnyVariable(std::string name, DType dtype, const Shape* shape, const detail::AnyInitialValue& initial,
              const VariableOptions& options);

  /// One variable's part of a read or push of several variables.
  struct Part {
    const AnyVariable* variable;
    std::span<const std::int64_t> ids;
    void* out;
    const void* gradient;
    std::size_t elements;
  };
  static Pending pending_read(strategy::Context& context, std::uint64_t reading);
  static Pending start_lookups(std::span<const Part> parts, ReadMode mode);
  static void push_parts(std::span<const Part> parts);

  void lookup(std::span<const std::int64_t> ids, void* out, std::size_t elements, ReadMode mode) const;
  void pull(std::uint64_t first_row, void* out, std::size_t elements, ReadMode mode) const;
  /// Reads the complete variable, from the thread's CachingScope if one is open.
  void pull_whole(void* out, std::size_t elements) const;
  std::shared_ptr<const std::byte> mapped_memory() const;
  Pending pull_async(std::uint64_t first_row, void* out, std::size_t elements) const;
  void push(std::span<const std::int64_t> ids, const void* gradient, std::size_t elements) const;
  void push_dense(const void* gradient, std::size_t elements) const;
  /// Returns a Pending for all pushes of this rank to the ps of this variable so far.
  Pending pushed() const;
  void lookup_to_gpu(const DeviceStream& stream, std::span<const std::int64_t> ids, void* out,
                     std::size_t elements, ReadMode mode) const;
  void pull_to_gpu(const DeviceStream& stream, std::uint64_t first_row, void* out, std::size_t elements,
                   ReadMode mode) const;
  void push_from_gpu(const DeviceStream& stream, std::span<const std::int64_t> ids, const void* gradient,
                     std::size_t elements) const;
  void push_dense_from_gpu(const DeviceStream& stream, const void* gradient, std::size_t elements) const;
  void update(Op op, std::uint64_t first_row, const void* values, std::size_t elements) const;
  void update_all(Op op, const void* values, std::size_t elements) const;
  void scatter(Op op, std::span<const std::int64_t> ids, const void* values, std::size_t elements) const;

  /// Serialized form of a variable: its number and, for one shard's variable, the shard.
  struct Sent {
    std::uint32_t id = 0;
    std::uint32_t part = 0;  ///< shard number + 1; 0: all shards
  };
  /// Throws Error(failed_precondition) for a variable in the coordinator's process, which other ranks cannot
  /// reach.
  Sent to_send() const;
  void bind(const Sent& sent, DType dtype);
  std::vector<std::shared_ptr<const strategy::BoundVariable>> bound_shards() const;
  /// Returns null if there is no such variable.
  static std::shared_ptr<const strategy::BoundVariable> find(const std::string& name, DType dtype);

  std::shared_ptr<const strategy::BoundVariable> bound_;
};

/// Rows of a variable by id, or of a dynamic table by key.
///
/// Reads are relaxed unless ReadMode::consistent is given. Every call throws Error: invalid_argument for
/// values that do not match the ids or the dtype, and out_of_range for an id that is not a row of the
/// variable (both before anything is sent); unavailable naming a dead ps, deadline_exceeded.
template <class T>
class RowAccess : public AnyVariable {
 public:
  using value_type = T;
  using element_type = Element<T>;

  /// Returns the rows `ids`, in that order.
  Rows<T> lookup(ConstSpan<std::int64_t> ids, ReadMode mode = ReadMode::relaxed) const {
    Rows<T> rows{std::vector<element_type>(ids.size() * width()), width()};
    AnyVariable::lookup(ids, rows.values.data(), rows.values.size(), mode);
    return rows;
  }
  /// As above, into `out`, which must have ids.size() * width() elements.
  void lookup(ConstSpan<std::int64_t> ids, std::span<element_type> out,
              ReadMode mode = ReadMode::relaxed) const {
    AnyVariable::lookup(ids, out.data(), out.size(), mode);
  }
  /// Starts a lookup and returns, so that it overlaps with computation. Rows of a ps on this host are read
  /// before it returns. `ids` may be reused on return, `out` only after Pending::wait().
  [[nodiscard]] Pending lookup_async(ConstSpan<std::int64_t> ids, std::span<element_type> out) const {
    const Part part{this, ids, out.data(), nullptr, out.size()};
    return start_lookups({&part, 1}, ReadMode::relaxed);
  }

  /// Sends a gradient; the ps applies the variable's optimizer to it. Returns before it is applied; see
  /// flush(). --nan-gradients decides about NaN and infinity: passed, refused with Error(invalid_argument)
  /// before anything is sent, or their rows skipped (for a dense gradient, the whole push).
  void push(const IndexedSlices<T>& gradient) const { push(gradient.ids, gradient.values); }
  void push(ConstSpan<std::int64_t> ids, ConstSpan<element_type> gradient) const {
    AnyVariable::push(ids, gradient.data(), gradient.size());
  }
  /// As push. The returned Pending completes with this push and this rank's earlier pushes to the same ps;
  /// flush() waits for all pushes to all variables.
  [[nodiscard]] Pending push_async(ConstSpan<std::int64_t> ids, ConstSpan<element_type> gradient) const {
    push(ids, gradient);
    return pushed();
  }

 protected:
  RowAccess() = default;
  using AnyVariable::AnyVariable;
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

  /// Returns the variable of that name in the scope, or nullopt; get_variable
  /// (capstan/detail/get_variable.hpp) can create it then. Throws Error(invalid_argument) for a variable of
  /// another dtype.
  static std::optional<Variable> find(const std::string& name) {
    auto bound = AnyVariable::find(name, dtype_of<T>);
    return bound == nullptr ? std::nullopt : std::optional(Variable(std::move(bound)));
  }

  /// One variable per shard, with the shard's rows only: row 0 of "w/part_0" is its first row. They share
  /// their values with this variable, and can be read, changed and passed to closures like any other. For a
  /// variable with one shard, returns the variable itself.
  std::vector<Variable> variables() const {
    std::vector<Variable> variables;
    for (auto& bound : this->bound_shards()) variables.push_back(Variable(std::move(bound)));
    return variables;
  }

  /// Returns the complete variable: the shards in order. In a CachingScope, returns the result of its first
  /// complete read.
  std::vector<element_type> pull() const {
    std::vector<element_type> values(this->rows() * this->width());
    AnyVariable::pull_whole(values.data(), values.size());
    return values;
  }
  /// pull() as an array of the variable's shape.
  Array<T> read() const { return Array<T>(this->shape(), pull()); }
  /// read(), where an Array is expected. Variables are operands of arithmetic and comparisons
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
  /// applies pushes, so a read is relaxed. The memory stays mapped while `values` or a copy of it lives; once
  /// the ps's memory is lost (docs/failures.md), it no longer changes; a restarted coordinator may reset it
  /// to zero. Throws Error(failed_precondition) for a variable with several shards, of which variables()
  /// returns each, and for a shard on another host, on a GPU, or under --window=rma.
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
  // overlaps with the transfer of the next. A relaxed pull or a dense push of a variable all of whose shards
  // are reached through an adapter bypasses staging where UCX supports it (--gpu-transfer).
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
  /// Adds one value to every element.
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

/// Rows of one of the variables or dynamic tables of a lookup_all.
template <class T>
struct Lookup {
  const RowAccess<T>& variable;
  std::span<const std::int64_t> ids;
  std::span<Element<T>> out;  ///< ids.size() * variable.width() elements
};
template <class T, class I, class O>
Lookup(const RowAccess<T>&, const I&, O&) -> Lookup<T>;

/// A gradient of rows of one of the variables or dynamic tables of a push_all.
template <class T>
struct Push {
  const RowAccess<T>& variable;
  std::span<const std::int64_t> ids;
  std::span<const Element<T>> gradient;
};
template <class T, class I, class G>
Push(const RowAccess<T>&, const I&, const G&) -> Push<T>;

/// Looks up rows of several variables with one round trip to each ps:
/// `lookup_all(Lookup{entities, ids, rows}, Lookup{relations, more_ids, more_rows})`. Throws
/// Error(invalid_argument) for variables of different strategies.
template <class... T>
[[nodiscard]] Pending lookup_all_async(const Lookup<T>&... lookups) {
  const AnyVariable::Part parts[] = {
      {&lookups.variable, lookups.ids, lookups.out.data(), nullptr, lookups.out.size()}...};
  return AnyVariable::start_lookups(parts, ReadMode::relaxed);
}
template <class... T>
void lookup_all(const Lookup<T>&... lookups) {
  lookup_all_async(lookups...).wait();
}

/// Pushes gradients of several variables with one notification per ps: `push_all(Push{entities, ids, g},
/// ...)`. If an id is out of range for its variable, no gradient is sent.
template <class... T>
void push_all(const Push<T>&... pushes) {
  const AnyVariable::Part parts[] = {
      {&pushes.variable, pushes.ids, nullptr, pushes.gradient.data(), pushes.gradient.size()}...};
  AnyVariable::push_parts(parts);
}
/// As above, for a run-time number of variables.
template <class T>
void push_all(std::span<const Push<T>> pushes) {
  std::vector<AnyVariable::Part> parts;
  for (const Push<T>& push : pushes)
    parts.push_back({&push.variable, push.ids, nullptr, push.gradient.data(), push.gradient.size()});
  AnyVariable::push_parts(parts);
}

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

/// A 64-bit counter on a ps to which any rank may add, such as a global step.
class CAPSTAN_API Counter {
 public:
  /// Starts at 0. REQUIRES: a strategy's scope. Throws Error: already_exists for a name that is taken,
  /// invalid_argument for a name that no variable could have.
  explicit Counter(std::string name);

  /// Adds as a push does: in a closure, it has been applied when the closure counts as done, and counts once
  /// even if the closure runs again after its worker died.
  void add(std::int64_t delta) const;
  /// Adds immediately and returns the previous value. In a closure that runs again it is repeated.
  std::int64_t fetch_add(std::int64_t delta) const;
  std::int64_t value() const { return fetch_add(0); }

 private:
  friend struct Serializer<Counter>;
  explicit Counter(strategy::Context& context) : context_(&context) {}
  /// The context of the rank that runs the calling closure.
  static strategy::Context& context_here();

  strategy::Context* context_;
  std::int32_t ps_ = 0;
  std::uint32_t index_ = 0;
};

template <>
struct Serializer<Counter> {
  static void write(Writer& out, const Counter& counter) {
    capstan::write(out, counter.ps_);
    capstan::write(out, counter.index_);
  }
  static Counter read(Reader& in) {
    Counter counter(Counter::context_here());
    counter.ps_ = capstan::read<std::int32_t>(in);
    counter.index_ = capstan::read<std::uint32_t>(in);
    return counter;
  }
};

}  // namespace capstan
