// variable.hpp -- parameters that live on the ps, as a program sees them: pull, lookup, push, flush.
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

/// Some rows of a variable, copied: row i is `[i * width, (i + 1) * width)` of `values`.
template <class T>
struct Rows {
  std::vector<Element<T>> values;
  std::uint64_t width = 0;
  std::span<const Element<T>> operator[](std::size_t row) const {
    return {values.data() + row * width, width};
  }
  std::size_t size() const { return width == 0 ? 0 : values.size() / width; }
};

/// A gradient of some rows: row i of `values` belongs to row ids[i] of the variable. An id may be named
/// twice.
template <class T>
struct IndexedSlices {
  std::vector<std::int64_t> ids;
  std::vector<Element<T>> values;
};

/// What a read may see while pushes are applied.
enum class ReadMode : std::uint8_t {
  /// An element is never torn, but a row may show one element before and another after an update.
  relaxed,
  /// What is read of one shard lies between two pushes. Costs a second look at the shard's version; where
  /// pushes leave no pause, the ps holds further ones back and serves the read.
  consistent,
};

/// A read or a push that has been started. Used by the thread that started it. The `out` of a read must live
/// until `wait` has returned or this object is destroyed.
class CAPSTAN_API Pending {
 public:
  Pending();
  Pending(Pending&& other) noexcept;
  Pending& operator=(Pending&& other) noexcept;
  /// Cancels a read that has not ended. A push is applied all the same.
  ~Pending();

  /// Returns true once the rows are there, the ps have applied the push, or `wait` would throw. Waits for
  /// neither; of a push to a ps that is reached by RMA, it reads a word of the ps's memory.
  bool ready() const;
  /// Blocks until the rows have been read, or the ps have applied the push; a push to a variable of a
  /// synchronous update group counts as applied when the ps holds it for the end of the step. Throws Error:
  /// unavailable, deadline_exceeded, aborted (this rank counts as dead), cancelled. After an error, a push
  /// may be waited for again; a read is cancelled.
  void wait();

 private:
  friend class AnyVariable;
  explicit Pending(std::unique_ptr<strategy::PendingCall> call);
  std::unique_ptr<strategy::PendingCall> call_;  // null: it has ended
};

template <class T>
struct Lookup;
template <class T>
struct Push;

/// Where a shard lies.
struct ShardInfo {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  int ps = 0;        ///< index among the ps
  std::string name;  ///< "w/part_0"; "w" of the only one
};

/// What all variables have, whatever their dtype. A handle: copies are the same variable.
class CAPSTAN_API AnyVariable {
 public:
  const std::string& name() const;
  DType dtype() const;
  Shape shape() const;
  /// Along axis 0; 1 of a scalar.
  std::uint64_t rows() const;
  /// Elements in a row.
  std::uint64_t width() const;
  /// By first row, cut by the "div" rule: 10 rows in 4 shards are 3, 3, 2, 2. Variable::variables() has them
  /// as variables.
  std::vector<ShardInfo> shards() const;
  bool trainable() const;
  VariableAggregation aggregation() const;
  VariableSynchronization synchronization() const;
  /// It was created outside of a strategy's scope and lives in the coordinator's process.
  bool on_coordinator() const;
  /// Waits until every push that this rank has made, to any variable, has been applied.
  void flush() const;
  /// Sets the learning rate of the optimizer, in place of the rate or schedule of the variable's creation.
  /// Applied on each ps after what this rank has pushed before; when it returns, it holds for all pushes that
  /// any rank begins. Of a synchronous update group, the step in progress has the new rate too. Checkpoints
  /// store it, and a restore brings it back, or the rate of the creation; a spare that replaces a ps restores
  /// the rate of its checkpoint, too. In a closure that runs again, it
  /// takes effect once. Throws Error(invalid_argument) for a rate with which the variable could not be
  /// created, and what other calls throw.
  void set_learning_rate(double rate) const;
  /// Rows of gradients that this rank has left out because of NaN or infinity: --nan-gradients=skip.
  std::uint64_t skipped_rows() const;

  /// For the layers above; not for programs.
  const std::shared_ptr<const strategy::BoundVariable>& bound() const noexcept { return bound_; }

 protected:
  template <class... T>
  friend Pending lookup_all_async(const Lookup<T>&... lookups);
  template <class... T>
  friend void push_all(const Push<T>&... pushes);
  template <class T>
  friend void push_all(std::span<const Push<T>> pushes);

  /// What is done to rows: protocol::RowOp.
  enum class Op : std::uint32_t { set = 1, add, sub, mul, div, min, max };

  AnyVariable() = default;
  AnyVariable(std::string name, DType dtype, const Shape* shape, const detail::AnyInitialValue& initial,
              const VariableOptions& options);

  /// One variable's part of a read or a push of several.
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

  void lookup(std::span<const std::int64_t> ids, void* out, std::size_t room, ReadMode mode) const;
  void pull(std::uint64_t first_row, void* out, std::size_t elements, ReadMode mode) const;
  /// All of it, from the thread's CachingScope if there is one.
  void pull_whole(void* out, std::size_t elements) const;
  Pending pull_async(std::uint64_t first_row, void* out, std::size_t elements) const;
  void push(std::span<const std::int64_t> ids, const void* gradient, std::size_t elements) const;
  void push_dense(const void* gradient, std::size_t elements) const;
  /// Returns a Pending for all pushes of this rank to the ps of this variable so far.
  Pending pushed() const;
  void lookup_to_gpu(const DeviceStream& stream, std::span<const std::int64_t> ids, void* out,
                     std::size_t room, ReadMode mode) const;
  void pull_to_gpu(const DeviceStream& stream, std::uint64_t first_row, void* out, std::size_t elements,
                   ReadMode mode) const;
  void push_from_gpu(const DeviceStream& stream, std::span<const std::int64_t> ids, const void* gradient,
                     std::size_t elements) const;
  void push_dense_from_gpu(const DeviceStream& stream, const void* gradient, std::size_t elements) const;
  void update(Op op, std::uint64_t first_row, const void* values, std::size_t elements) const;
  void update_all(Op op, const void* values, std::size_t elements) const;
  void scatter(Op op, std::span<const std::int64_t> ids, const void* values, std::size_t elements) const;

  /// How a variable travels: its number, and of one shard's variable which shard it is.
  struct Sent {
    std::uint32_t id = 0;
    std::uint32_t part = 0;  ///< from 1 on; 0: all of it
  };
  /// Throws Error(failed_precondition) for a variable that other ranks do not reach.
  Sent to_send() const;
  void bind(const Sent& sent, DType dtype);
  std::vector<std::shared_ptr<const strategy::BoundVariable>> bound_shards() const;
  /// Null where there is none.
  static std::shared_ptr<const strategy::BoundVariable> find(const std::string& name, DType dtype);

  std::shared_ptr<const strategy::BoundVariable> bound_;
};

/// A variable of float, double, float16, bfloat16, std::int32_t, std::int64_t or bool (kept as bytes of 0 and
/// 1), of any rank. Made on the coordinator, after Cluster::join: in the scope of a strategy it goes to the
/// ps, shard by shard, and may be handed to closures as an argument; outside of a scope it stays in the
/// coordinator's process. Used by the thread that runs the program, or the closure.
///
/// Values are row-major. Reads are relaxed unless ReadMode::consistent is given. Every call throws Error:
/// out_of_range for a row that is not there, invalid_argument for values that do not fit the rows or the
/// dtype (nothing has been sent then), unavailable naming a ps that is gone, deadline_exceeded.
template <class T>
class Variable : public AnyVariable {
 public:
  using value_type = T;
  using element_type = Element<T>;

  /// `Variable<float>("v", Shape{3, 4})`: zeros, unless `initial` says more. Throws Error:
  /// failed_precondition on another rank than the coordinator; invalid_argument for a size below 0, values of
  /// another shape, parameters of the optimizer or initializer that are out of range, and a name that no
  /// checkpoint could hold (docs/checkpoint_format.md#names); already_exists for a name that is taken.
  template <std::same_as<Shape> S>
  Variable(std::string name, const S& shape, const InitialValue<T>& initial = {},
           const VariableOptions& options = {})
      : AnyVariable(std::move(name), dtype_of<T>, &shape, initial.any(), options) {}
  /// `Variable("v", 1.0F)`: of the initial value's shape. A number makes a scalar, a vector or a span a
  /// variable of rank 1, an Array or a function that returns one a variable of its shape.
  template <std::convertible_to<InitialValue<T>> Value>
  Variable(std::string name, Value initial, const VariableOptions& options = {})
      : AnyVariable(std::move(name), dtype_of<T>, nullptr, InitialValue<T>(std::move(initial)).any(),
                    options) {}
  /// `Variable<float>("v", {1, 2, 3})`: these values, of rank 1.
  Variable(std::string name, std::initializer_list<T> values, const VariableOptions& options = {})
      : AnyVariable(std::move(name), dtype_of<T>, nullptr, InitialValue<T>(values).any(), options) {}
  /// `Variable<float>("v", {{1, 2}, {3, 4}})`: the rows of a matrix. `{}` and rows of one value are
  /// ambiguous: write `Shape{0}`, or `Shape{2, 1}, {1, 2}`. Throws Error(invalid_argument) for rows of
  /// different lengths.
  Variable(std::string name, std::initializer_list<std::initializer_list<T>> rows,
           const VariableOptions& options = {})
      : AnyVariable(std::move(name), dtype_of<T>, nullptr, InitialValue<T>(rows).any(), options) {}
  Variable(std::string name, std::initializer_list<std::int64_t> sizes, const InitialValue<T>& initial,
           const VariableOptions& options = {}) = delete;  // a shape is written Shape{...}

  /// The variable of that name in the scope, or nothing. get_variable (capstan/detail/get_variable.hpp) makes
  /// it then. Throws Error(invalid_argument) for one of another dtype.
  static std::optional<Variable> find(const std::string& name) {
    auto bound = AnyVariable::find(name, dtype_of<T>);
    return bound == nullptr ? std::nullopt : std::optional(Variable(std::move(bound)));
  }

  /// One variable for each shard, of the shard's rows alone: "w/part_0" has row 0 as its row 0. They are read
  /// and changed as any variable, and passed to closures; what is done to them is done to this one. Of a
  /// variable with one shard, itself.
  std::vector<Variable> variables() const {
    std::vector<Variable> variables;
    for (auto& bound : bound_shards()) variables.push_back(Variable(std::move(bound)));
    return variables;
  }

  /// The rows `ids`, in that order.
  Rows<T> lookup(ConstSpan<std::int64_t> ids, ReadMode mode = ReadMode::relaxed) const {
    Rows<T> rows{std::vector<element_type>(ids.size() * width()), width()};
    AnyVariable::lookup(ids, rows.values.data(), rows.values.size(), mode);
    return rows;
  }
  /// The same into `out`, which has exactly ids.size() * width() elements.
  void lookup(ConstSpan<std::int64_t> ids, std::span<element_type> out,
              ReadMode mode = ReadMode::relaxed) const {
    AnyVariable::lookup(ids, out.data(), out.size(), mode);
  }
  /// Starts it and returns, so that the next batch's rows travel while this one is computed. Rows of a ps on
  /// this host are there at once. `ids` may be reused on return, `out` not before Pending::wait().
  [[nodiscard]] Pending lookup_async(ConstSpan<std::int64_t> ids, std::span<element_type> out) const {
    const Part part{this, ids, out.data(), nullptr, out.size()};
    return start_lookups({&part, 1}, ReadMode::relaxed);
  }

  /// All of it: the shards one after the other. In a CachingScope, what its first call returned.
  std::vector<element_type> pull() const {
    std::vector<element_type> values(rows() * width());
    AnyVariable::pull_whole(values.data(), values.size());
    return values;
  }
  /// The same with its shape.
  Array<T> read() const { return Array<T>(shape(), pull()); }
  /// The same where an Array is expected. In arithmetic and comparisons a variable is an operand
  /// (capstan/array.hpp).
  operator Array<T>() const { return read(); }  // NOLINT(google-explicit-constructor)
  /// Python's v[...]: v.at(Slice{.start = 2}, ellipsis, -1). Reads the rows that are needed; see read_slice.
  template <std::convertible_to<Index>... I>
  Array<T> at(const I&... indices) const {
    return read_slice(*this, indices...);
  }
  /// Rows from `first_row` on, as many as fill `out`, whose size is a multiple of width().
  void pull(std::uint64_t first_row, std::span<element_type> out, ReadMode mode = ReadMode::relaxed) const {
    AnyVariable::pull(first_row, out.data(), out.size(), mode);
  }
  /// Starts it and returns; see lookup_async.
  [[nodiscard]] Pending pull_async(std::uint64_t first_row, std::span<element_type> out) const {
    return AnyVariable::pull_async(first_row, out.data(), out.size());
  }

  /// Sends a gradient; the ps applies the variable's optimizer. Returns before it is applied, see flush().
  /// --nan-gradients says what becomes of NaN and infinity: passed, refused (Error(invalid_argument), nothing
  /// has been sent), or their rows skipped, of a dense gradient all.
  void push(const IndexedSlices<T>& gradient) const { push(gradient.ids, gradient.values); }
  void push(ConstSpan<std::int64_t> ids, ConstSpan<element_type> gradient) const {
    AnyVariable::push(ids, gradient.data(), gradient.size());
  }
  /// A gradient for every element.
  void push_dense(ConstSpan<element_type> gradient) const {
    AnyVariable::push_dense(gradient.data(), gradient.size());
  }
  /// The same as push and push_dense. The result waits for this push, and for those that this rank has made
  /// before to the same ps; flush() waits for all of all variables.
  [[nodiscard]] Pending push_async(ConstSpan<std::int64_t> ids, ConstSpan<element_type> gradient) const {
    push(ids, gradient);
    return pushed();
  }
  [[nodiscard]] Pending push_dense_async(ConstSpan<element_type> gradient) const {
    push_dense(gradient);
    return pushed();
  }

  // The same between the ps and a GPU's memory, in the order of the stream's work: what is given to it after
  // a read finds the rows, and a push sends what the work before it has made. `ids` and the gradient may be
  // reused when the call returns, `out` is there when the stream is. Rows go through pinned memory, piece by
  // piece, one of which is copied while the next one travels; a relaxed pull and a dense push of a variable
  // all of whose shards an adapter reaches, straight from and to the GPU's memory where UCX can
  // (--gpu-transfer).
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

  // Assignments and scatter operations change values on the ps that own them, without the optimizer and its
  // slots, after what this rank has pushed before; they return when that has been done. Each shard is changed
  // as a whole (see ReadMode::consistent), several shards one after the other. They return the variable.
  // Called by several replicas at the same time, inside run, they wait for each other, and the variable's
  // aggregation makes one change of theirs: see VariableAggregation for what and for the errors.

  /// Sets every element. Throws Error(invalid_argument) for fewer or more values than there are.
  const Variable& assign(ConstSpan<element_type> values) const { return all(Op::set, values); }
  /// Sets rows from `first_row` on, as many as there are values for.
  const Variable& assign(ConstSpan<element_type> values, std::uint64_t first_row) const {
    update(Op::set, first_row, values.data(), values.size());
    return *this;
  }
  /// A value for every element.
  const Variable& assign_add(ConstSpan<element_type> values) const { return all(Op::add, values); }
  const Variable& assign_sub(ConstSpan<element_type> values) const { return all(Op::sub, values); }

  /// Row i of `values` changes row ids[i]; a row that is named twice is changed twice, in that order.
  const Variable& scatter_add(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::add, ids, values);
  }
  const Variable& scatter_sub(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::sub, ids, values);
  }
  const Variable& scatter_mul(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::mul, ids, values);
  }
  /// Integers are divided towards zero; by 0 is invalid_argument.
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
  /// The same: the container's first axis is the one that is indexed.
  const Variable& batch_scatter_update(ConstSpan<std::int64_t> ids, ConstSpan<element_type> values) const {
    return some(Op::set, ids, values);
  }

 private:
  friend struct Serializer<Variable<T>>;
  template <class... U>
  friend Pending lookup_all_async(const Lookup<U>&... lookups);
  template <class... U>
  friend void push_all(const Push<U>&... pushes);
  template <class U>
  friend void push_all(std::span<const Push<U>> pushes);
  Variable() = default;
  explicit Variable(std::shared_ptr<const strategy::BoundVariable> bound) { bound_ = std::move(bound); }

  const Variable& all(Op op, std::span<const element_type> values) const {
    update_all(op, values.data(), values.size());
    return *this;
  }
  const Variable& some(Op op, std::span<const std::int64_t> ids, std::span<const element_type> values) const {
    scatter(op, ids, values.data(), values.size());
    return *this;
  }
  Part part(std::span<const std::int64_t> ids, std::span<element_type> out) const {
    return {this, ids, out.data(), nullptr, out.size()};
  }
  Part part(std::span<const std::int64_t> ids, std::span<const element_type> gradient) const {
    return {this, ids, nullptr, gradient.data(), gradient.size()};
  }
};

template <class V>
Variable(std::string, V, VariableOptions = {}) -> Variable<ValueTypeOf<V>>;
template <class T>
Variable(std::string, std::initializer_list<T>, VariableOptions = {}) -> Variable<T>;
template <class T>
Variable(std::string, std::initializer_list<std::initializer_list<T>>, VariableOptions = {}) -> Variable<T>;

/// Rows of one variable among several, for lookup_all.
template <class T>
struct Lookup {
  const Variable<T>& variable;
  std::span<const std::int64_t> ids;
  std::span<Element<T>> out;  ///< ids.size() * variable.width() elements
};
template <class T, class I, class O>
Lookup(const Variable<T>&, const I&, O&) -> Lookup<T>;

/// A gradient of rows of one variable among several, for push_all.
template <class T>
struct Push {
  const Variable<T>& variable;
  std::span<const std::int64_t> ids;
  std::span<const Element<T>> gradient;
};
template <class T, class I, class G>
Push(const Variable<T>&, const I&, const G&) -> Push<T>;

/// Looks rows of several variables up, at the cost of one round trip to each ps:
/// `lookup_all(Lookup{entities, ids, rows}, Lookup{relations, more_ids, more_rows})`. All variables of one
/// strategy, or Error(invalid_argument).
template <class... T>
[[nodiscard]] Pending lookup_all_async(const Lookup<T>&... lookups) {
  const AnyVariable::Part parts[] = {lookups.variable.part(lookups.ids, lookups.out)...};
  return AnyVariable::start_lookups(parts, ReadMode::relaxed);
}
template <class... T>
void lookup_all(const Lookup<T>&... lookups) {
  lookup_all_async(lookups...).wait();
}

/// Pushes gradients of several variables, shown to each ps together: `push_all(Push{entities, ids, g}, ...)`.
/// An id that one of them does not have means that none is sent.
template <class... T>
void push_all(const Push<T>&... pushes) {
  const AnyVariable::Part parts[] = {pushes.variable.part(pushes.ids, pushes.gradient)...};
  AnyVariable::push_parts(parts);
}
/// The same of any number.
template <class T>
void push_all(std::span<const Push<T>> pushes) {
  std::vector<AnyVariable::Part> parts;
  for (const Push<T>& push : pushes) parts.push_back(push.variable.part(push.ids, push.gradient));
  AnyVariable::push_parts(parts);
}

/// A variable travels as its number; the receiving rank binds it to its own connections.
template <class T>
struct Serializer<Variable<T>> {
  static void write(Writer& out, const Variable<T>& variable) { capstan::write(out, variable.to_send()); }
  static Variable<T> read(Reader& in) {
    Variable<T> variable;
    variable.bind(capstan::read<typename Variable<T>::Sent>(in), dtype_of<T>);
    return variable;
  }
};

/// A 64-bit number on a ps that any rank may add to: a global step.
class CAPSTAN_API Counter {
 public:
  /// REQUIRES: a strategy's scope. Starts at 0. Throws Error: already_exists for a name that is taken,
  /// invalid_argument for one that no variable could have.
  explicit Counter(std::string name);

  /// Adds, as a push does: in a closure it has been done when that counts as done, and counts once though the
  /// closure is run again after its worker has died.
  void add(std::int64_t delta) const;
  /// Adds at once and returns what it was before. In a closure that is run again it is done again.
  std::int64_t fetch_add(std::int64_t delta) const;
  std::int64_t value() const { return fetch_add(0); }

 private:
  friend struct Serializer<Counter>;
  explicit Counter(strategy::Context& context) : context_(&context) {}
  /// Of the rank that runs the calling closure.
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
