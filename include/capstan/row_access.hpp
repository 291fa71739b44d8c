// row_access.hpp -- lookups and pushes of rows, of variables and of dynamic tables.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/buffer.hpp"
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
  Buffer<Element<T>> values;
  std::uint64_t width = 0;
  std::span<const Element<T>> operator[](std::size_t row) const {
    return {values.data() + row * width, width};
  }
  std::size_t size() const { return width == 0 ? 0 : values.size() / width; }
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
  /// The rows of one shard are read between two pushes. Costs a second read of the shard's version. If pushes
  /// leave no pause, the ps delays further pushes and serves the read.
  consistent,
};

/// A read or a push in flight. Used by the thread that started it. The `out` of a read must live until `wait`
/// has returned or this object is destroyed: declare `out` first. Rows of other hosts arrive meanwhile, in a
/// thread of Capstan.
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
  /// The shards, ordered by first row. Rows are divided by the "div" rule: 10 rows in 4 shards are 3, 3, 2,
  /// 2. Variable::variables() returns the shards as variables.
  std::vector<ShardInfo> shards() const;
  bool trainable() const;
  VariableAggregation aggregation() const;
  VariableSynchronization synchronization() const;
  /// Returns true for a variable created outside of a strategy's scope, in the coordinator's process.
  bool on_coordinator() const;
  /// Blocks until all pushes that this rank has made so far, to any variable, have been applied. Throws
  /// Error: unavailable naming a dead ps, deadline_exceeded, aborted (this rank counts as dead), cancelled.
  void flush() const;
  /// Sets the optimizer's learning rate, replacing the rate or schedule given at creation. Each ps applies
  /// the new rate after this rank's earlier pushes. Once this call has returned, the rate holds for every
  /// push that any rank starts, and in a synchronous update group also for the step in progress. Checkpoints
  /// store the rate. A restore, and a spare that replaces a ps, set the stored rate, or else the rate given
  /// at creation. A closure that runs again sets the rate only once. Throws Error(invalid_argument) for a
  /// rate with which the variable could not be created, and the errors of other calls.
  void set_learning_rate(double rate) const;
  /// Number of gradient rows that this rank has skipped because of NaN or infinity: --nan-gradients=skip.
  std::uint64_t skipped_rows() const;

  /// Internal: for the layers above, not for programs.
  const std::shared_ptr<const strategy::BoundVariable>& bound() const noexcept { return bound_; }

 protected:
  template <class... T>
  friend Pending lookup_all_async(const Lookup<T>&... lookups);
  template <class... T>
  friend void lookup_all(const Lookup<T>&... lookups);
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
  static void lookup_parts(std::span<const Part> parts, ReadMode mode);
  static void push_parts(std::span<const Part> parts);

  void lookup(std::span<const std::int64_t> ids, void* out, std::size_t elements, ReadMode mode) const;
  void pull(std::uint64_t first_row, void* out, std::size_t elements, ReadMode mode) const;
  /// Reads the complete variable, from the thread's CachingScope if one is open.
  void pull_complete(void* out, std::size_t elements) const;
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

  /// Serialized form of a variable: its number and, for an element of variables(), its shard.
  struct Sent {
    std::uint32_t id = 0;
    std::uint32_t part = 0;  ///< shard number + 1; 0: all shards
  };
  /// Throws Error(failed_precondition) for a variable in the coordinator's process, which other ranks cannot
  /// reach.
  Sent to_send() const;
  void bind(const Sent& sent, DType dtype);
  std::vector<std::shared_ptr<const strategy::BoundVariable>> bound_shards() const;
  std::shared_ptr<const strategy::BoundVariable> bound_exactly() const;
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
    Rows<T> rows{Buffer<element_type>(ids.size() * width()), width()};
    AnyVariable::lookup(ids, rows.values.data(), rows.values.size(), mode);
    return rows;
  }
  /// As above, into `out`, which must have ids.size() * width() elements.
  void lookup(ConstSpan<std::int64_t> ids, std::span<element_type> out,
              ReadMode mode = ReadMode::relaxed) const {
    AnyVariable::lookup(ids, out.data(), out.size(), mode);
  }
  /// Starts a lookup and returns, so that it overlaps with computation: rows that a ps sends are stored while
  /// the program computes. Rows of a ps on this host are read before it returns. `ids` may be reused on
  /// return, `out` only after Pending::wait().
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
  const AnyVariable::Part parts[] = {
      {&lookups.variable, lookups.ids, lookups.out.data(), nullptr, lookups.out.size()}...};
  AnyVariable::lookup_parts(parts, ReadMode::relaxed);
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

}  // namespace capstan
