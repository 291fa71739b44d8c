// variable.hpp -- parameters that live on the ps, as a program sees them: pull, lookup, push, flush.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/initializers.hpp"
#include "capstan/optimizers.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

namespace strategy {
struct BoundVariable;
}

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

struct VariableOptions {
  Optimizer optimizer = optimizers::SGD{};
};

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
  AnyVariable() = default;
  AnyVariable(std::string name, DType dtype, std::span<const std::int64_t> shape,
              const Initializer& initializer, const VariableOptions& options);

  void lookup(std::span<const std::int64_t> ids, void* out, std::size_t room) const;
  void pull(std::uint64_t first_row, void* out, std::size_t elements) const;
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
/// Reads are relaxed: an element is never torn, but a row may show one element before and another after an
/// update that is under way. Every call throws Error: out_of_range for a row that is not there (nothing has
/// been sent then), unavailable naming a ps that is gone, deadline_exceeded.
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
  Rows<T> lookup(std::span<const std::int64_t> ids) const {
    Rows<T> rows{std::vector<T>(ids.size() * width()), width()};
    AnyVariable::lookup(ids, rows.values.data(), rows.values.size());
    return rows;
  }
  /// The same into `out`, which has exactly ids.size() * width() elements.
  void lookup(std::span<const std::int64_t> ids, std::span<T> out) const {
    AnyVariable::lookup(ids, out.data(), out.size());
  }

  /// All of it.
  std::vector<T> pull() const {
    std::vector<T> values(rows() * width());
    AnyVariable::pull(0, values.data(), values.size());
    return values;
  }
  /// Rows from `first_row` on, as many as fill `out`, whose size is a multiple of width().
  void pull(std::uint64_t first_row, std::span<T> out) const {
    AnyVariable::pull(first_row, out.data(), out.size());
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
  Variable() = default;
};

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
