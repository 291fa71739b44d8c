// iterator.hpp -- Iterator: a stream of elements on one worker whose position can be saved and restored.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "capstan/cancellation.hpp"
#include "capstan/data/operator.hpp"
#include "capstan/data/sources.hpp"
#include "capstan/error.hpp"

namespace capstan {

/// Position of an iterator, as opaque bytes. Another iterator over the same pipeline, in this process or
/// another, can resume from it. May be an argument or result of a closure.
struct Position {
  std::vector<std::byte> bytes;
  friend bool operator==(const Position&, const Position&) = default;
};

/// A stream of elements, usually batches, made from a Dataset or a function. On a worker, the function passed
/// to `create_per_worker_dataset` creates it. Not thread-safe: one thread at a time.
template <class T>
class Iterator {
 public:
  using Element = T;

  /// `next` returns elements, then nullopt. The position of such an iterator is the number of elements
  /// returned. Only an iterator that has not passed a position can restore it, by calling `next` until it
  /// reaches the position.
  explicit Iterator(std::function<std::optional<T>()> next)
      : cursor_(std::make_unique<FunctionCursor>(std::move(next))) {}
  explicit Iterator(std::unique_ptr<data::Cursor<T>> cursor) : cursor_(std::move(cursor)) {}

  /// Returns the next element. Throws Error(out_of_range) at the end. An error of the pipeline (a malformed
  /// line, a function that throws) replaces one element, together with the rest of its batch; the next call
  /// continues after it. A file that cannot be opened fails every call. In a function that is cancelled,
  /// throws Error(cancelled) and consumes no element.
  T next() {
    if (auto value = try_next()) return std::move(*value);
    throw Error(Code::out_of_range, "end of the dataset");
  }
  /// As next(), but returns nullopt at the end.
  std::optional<T> try_next() {
    throw_if_cancelled();
    return cursor_->next();
  }

  Position position() const { return {cursor_->saved()}; }
  /// Resumes with exactly the elements that followed `position`, provided that files and functions yield the
  /// same data as before. Throws Error: invalid_argument for a position of another pipeline;
  /// failed_precondition for an iterator made from a function that has already passed the position.
  void restore(const Position& position) {
    Reader in(position.bytes);
    cursor_->load(in);
    if (in.left() != 0) {
      throw Error(Code::invalid_argument, "position of another pipeline: found " + std::to_string(in.left()) +
                                              " bytes after its end, expected none");
    }
  }

 private:
  class FunctionCursor final : public data::Cursor<T> {
   public:
    explicit FunctionCursor(std::function<std::optional<T>()> next) : next_(std::move(next)) {}
    std::optional<T> next() override {
      ++calls_;
      return next_();
    }
    void rewind() override {
      throw Error(Code::failed_precondition, "an Iterator made from a function cannot be rewound");
    }

   private:
    data::Kind kind() const noexcept override { return data::Kind::function; }
    void write_state(Writer& out) const override { capstan::write(out, calls_); }
    void read_state(Reader& in) override {
      const auto calls = capstan::read<std::uint64_t>(in);
      if (calls < calls_) {
        throw Error(Code::failed_precondition, "Iterator::restore: " + std::to_string(calls_) +
                                                   " elements were already read, expected at most " +
                                                   std::to_string(calls));
      }
      this->pass(calls - calls_);
    }
    std::function<std::optional<T>()> next_;
    std::uint64_t calls_ = 0;
  };

  std::unique_ptr<data::Cursor<T>> cursor_;
};

/// Returns the elements of a vector in order, once or, with `repeat`, endlessly.
template <class T>
Iterator<T> iterate(std::vector<T> elements, bool repeat = false) {
  return Iterator<T>(
      [elements = std::move(elements), at = std::size_t{0}, repeat]() mutable -> std::optional<T> {
        if (at == elements.size() && repeat) at = 0;
        if (at >= elements.size()) return std::nullopt;
        return elements[at++];
      });
}

}  // namespace capstan
