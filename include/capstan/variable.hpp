// variable.hpp -- parameters that live on the ps, as a program sees them: pull, lookup, push, flush.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/initializers.hpp"
#include "capstan/optimizers.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

namespace strategy {
struct BoundVariable;
class Context;
}  // namespace strategy

/// Some rows of a variable, copied: row i is `[i * width, (i + 1) * width)` of `values`.
template <class T>
struct Rows {
  std::vector<T> values;
  std::uint64_t width = 0;
  std::span<const T> operator[](std::size_t row) const { return {values.data() + row * width, width}; }
  std::size_t size() const { return width == 0 ? 0 : values.size() / width; }
};

/// A gradient of some rows: row i of `values` belongs to row ids[i] of the variable. An id may be named
/// twice.
template <class T>
struct IndexedSlices {
  std::vector<std::int64_t> ids;
  std::vector<T> values;
};

/// What a read may see while pushes are applied.
enum class ReadMode : std::uint8_t {
  /// An element is never torn, but a row may show one element before and another after an update.
  relaxed,
  /// What is read of one shard lies between two pushes. Costs a second look at the shard's version; where
  /// pushes leave no pause, the ps holds further ones back and serves the read.
  consistent,
};

/// A read that has been started. Its `out` must live until `wait` has returned, or this object is gone. Used
/// by the thread that started it.
class Pending {
 public:
  Pending() = default;
  Pending(Pending&& other) noexcept { swap(other); }
  Pending& operator=(Pending&& other) noexcept {
    swap(other);
    return *this;
  }
  /// What has not come is not waited for, and dropped.
  ~Pending();

  /// `wait` would return or throw at once. Never blocks.
  bool ready() const;
  /// Returns when the rows are there. Throws Error: unavailable, deadline_exceeded.
  void wait();

 private:
  friend class AnyVariable;
  Pending(strategy::Context* context, std::uint64_t reading) : context_(context), reading_(reading) {}
  void swap(Pending& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(reading_, other.reading_);
  }

  strategy::Context* context_ = nullptr;
  std::uint64_t reading_ = 0;
};

struct VariableOptions {
  Optimizer optimizer = optimizers::SGD{};
};

template <class T>
struct Lookup;
template <class T>
struct Push;

/// What all variables have, whatever their dtype. A handle: copies are the same variable.
class AnyVariable {
 public:
  const std::string& name() const;
  DType dtype() const;
  /// Rank 1 or 2.
  const std::vector<std::uint64_t>& shape() const;
  std::uint64_t rows() const;
  /// Elements in a row.
  std::uint64_t width() const;
  std::size_t shards() const;
  /// Waits until every push that this rank has made, to any variable, has been applied.
  void flush() const;

 protected:
  template <class... T>
  friend Pending lookup_all_async(const Lookup<T>&... lookups);
  template <class... T>
  friend void push_all(const Push<T>&... pushes);

  AnyVariable() = default;
  AnyVariable(std::string name, DType dtype, std::span<const std::int64_t> shape,
              const Initializer& initializer, const VariableOptions& options);

  /// One variable's part of a read or a push of several.
  struct Part {
    const AnyVariable* variable;
    std::span<const std::int64_t> ids;
    void* out;
    const void* gradient;
    std::size_t elements;
  };
  static Pending start_lookups(std::span<const Part> parts, ReadMode mode);
  static void push_parts(std::span<const Part> parts);

  void lookup(std::span<const std::int64_t> ids, void* out, std::size_t room, ReadMode mode) const;
  void pull(std::uint64_t first_row, void* out, std::size_t elements, ReadMode mode) const;
  Pending pull_async(std::uint64_t first_row, void* out, std::size_t elements) const;
  void push(std::span<const std::int64_t> ids, const void* gradient, std::size_t elements) const;
  void push_dense(const void* gradient, std::size_t elements) const;
  void assign(std::uint64_t first_row, const void* values, std::size_t elements) const;

  std::uint32_t id() const;
  void bind(std::uint32_t id, DType dtype);

  std::shared_ptr<const strategy::BoundVariable> bound_;
};

/// A variable of float, double or std::int64_t. Made in the scope of a strategy, on the coordinator; handed
/// to closures as an argument. Used by the thread that runs the program, or the closure.
///
/// Reads are relaxed unless ReadMode::consistent is given. Every call throws Error: out_of_range for a row
/// that is not there (nothing has been sent then), unavailable naming a ps that is gone, deadline_exceeded.
template <class T>
class Variable : public AnyVariable {
 public:
  using value_type = T;

  /// REQUIRES: a strategy's scope. Throws Error: failed_precondition outside of one, invalid_argument for a
  /// shape of another rank than 1 or 2 or a size that is not positive, already_exists for a name that is
  /// taken.
  Variable(std::string name, const std::vector<std::int64_t>& shape, const Initializer& initializer = {},
           const VariableOptions& options = {})
      : AnyVariable(std::move(name), dtype_of<T>, shape, initializer, options) {}

  /// The rows `ids`, in that order.
  Rows<T> lookup(std::span<const std::int64_t> ids, ReadMode mode = ReadMode::relaxed) const {
    Rows<T> rows{std::vector<T>(ids.size() * width()), width()};
    AnyVariable::lookup(ids, rows.values.data(), rows.values.size(), mode);
    return rows;
  }
  /// The same into `out`, which has exactly ids.size() * width() elements.
  void lookup(std::span<const std::int64_t> ids, std::span<T> out, ReadMode mode = ReadMode::relaxed) const {
    AnyVariable::lookup(ids, out.data(), out.size(), mode);
  }
  /// Starts it and returns, so that the next batch's rows travel while this one is computed. Rows of a ps on
  /// this host are there at once. `ids` may be reused on return, `out` not before Pending::wait().
  [[nodiscard]] Pending lookup_async(std::span<const std::int64_t> ids, std::span<T> out) const {
    const Part part{this, ids, out.data(), nullptr, out.size()};
    return start_lookups({&part, 1}, ReadMode::relaxed);
  }

  /// All of it.
  std::vector<T> pull() const {
    std::vector<T> values(rows() * width());
    AnyVariable::pull(0, values.data(), values.size(), ReadMode::relaxed);
    return values;
  }
  /// Rows from `first_row` on, as many as fill `out`, whose size is a multiple of width().
  void pull(std::uint64_t first_row, std::span<T> out, ReadMode mode = ReadMode::relaxed) const {
    AnyVariable::pull(first_row, out.data(), out.size(), mode);
  }
  /// Starts it and returns; see lookup_async.
  [[nodiscard]] Pending pull_async(std::uint64_t first_row, std::span<T> out) const {
    return AnyVariable::pull_async(first_row, out.data(), out.size());
  }

  /// Sends a gradient; the ps applies the variable's optimizer. Returns before it is applied, see flush().
  void push(const IndexedSlices<T>& gradient) const { push(gradient.ids, gradient.values); }
  void push(std::span<const std::int64_t> ids, std::span<const T> gradient) const {
    AnyVariable::push(ids, gradient.data(), gradient.size());
  }
  /// A gradient for every element.
  void push_dense(std::span<const T> gradient) const {
    AnyVariable::push_dense(gradient.data(), gradient.size());
  }

  /// Sets rows from `first_row` on. The optimizer and its slots are not touched.
  void assign(std::span<const T> values, std::uint64_t first_row = 0) const {
    AnyVariable::assign(first_row, values.data(), values.size());
  }

 private:
  friend struct Serializer<Variable<T>>;
  template <class... U>
  friend Pending lookup_all_async(const Lookup<U>&... lookups);
  template <class... U>
  friend void push_all(const Push<U>&... pushes);
  Variable() = default;

  Part part(std::span<const std::int64_t> ids, std::span<T> out) const {
    return {this, ids, out.data(), nullptr, out.size()};
  }
  Part part(std::span<const std::int64_t> ids, std::span<const T> gradient) const {
    return {this, ids, nullptr, gradient.data(), gradient.size()};
  }
};

/// Rows of one variable among several, for lookup_all.
template <class T>
struct Lookup {
  const Variable<T>& variable;
  std::span<const std::int64_t> ids;
  std::span<T> out;  ///< ids.size() * variable.width() elements
};
template <class T, class I, class O>
Lookup(const Variable<T>&, const I&, O&) -> Lookup<T>;

/// A gradient of rows of one variable among several, for push_all.
template <class T>
struct Push {
  const Variable<T>& variable;
  std::span<const std::int64_t> ids;
  std::span<const T> gradient;
};
template <class T, class I, class G>
Push(const Variable<T>&, const I&, const G&) -> Push<T>;

/// Looks rows of several variables up, at the cost of one round trip to each ps:
/// `lookup_all(Lookup{entities, ids, rows}, Lookup{relations, more_ids, more_rows})`. All variables of one
/// strategy.
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

/// A variable travels as its number; the receiving rank binds it to its own connections.
template <class T>
struct Serializer<Variable<T>> {
  static void write(Writer& out, const Variable<T>& variable) { capstan::write(out, variable.id()); }
  static Variable<T> read(Reader& in) {
    Variable<T> variable;
    variable.bind(capstan::read<std::uint32_t>(in), dtype_of<T>);
    return variable;
  }
};

/// A 64-bit number on a ps that any rank may add to: a global step.
class Counter {
 public:
  /// REQUIRES: a strategy's scope. Starts at 0.
  explicit Counter(std::string name);

  /// Adds and returns what it was before.
  std::int64_t fetch_add(std::int64_t delta) const;
  std::int64_t value() const { return fetch_add(0); }

 private:
  friend struct Serializer<Counter>;
  Counter() = default;
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
    Counter counter;
    counter.ps_ = capstan::read<std::int32_t>(in);
    counter.index_ = capstan::read<std::uint32_t>(in);
    return counter;
  }
};

}  // namespace capstan
