// iterator.hpp -- a stream of elements on one worker, which can say where it stands and go back there.
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

/// Where an iterator stands: some bytes that another iterator over the same pipeline can go on from, in this
/// process or in another one. Travels in closures and their results.
struct Position {
  std::vector<std::byte> bytes;
  friend bool operator==(const Position&, const Position&) = default;
};

/// A stream of elements, most often batches: made by a Dataset, or of a function. On a worker it is made
/// there by the function that `create_per_worker_dataset` was given. One thread at a time.
template <class T>
class Iterator {
 public:
  using Element = T;

  /// `next` gives elements until it gives nothing. A position is then the number of elements given, and can
  /// only be restored by an iterator that is not past it: the function is called as often as needed.
  explicit Iterator(std::function<std::optional<T>()> next)
      : cursor_(std::make_unique<FunctionCursor>(std::move(next))) {}
  explicit Iterator(std::unique_ptr<data::Cursor<T>> cursor) : cursor_(std::move(cursor)) {}

  /// Throws Error(out_of_range) at the end. An error of the pipeline (a line that is not understood, a
  /// function that throws) takes the place of one element, with all that would have been batched with it; the
  /// next call goes on behind it. A file that cannot be opened is an error every time. Throws
  /// Error(cancelled) in a function that is cancelled, and then takes no element.
  T next() {
    if (auto value = try_next()) return std::move(*value);
    throw Error(Code::out_of_range, "end of the dataset");
  }
  /// The same, but returns nothing at the end.
  std::optional<T> try_next() {
    throw_if_cancelled();
    return cursor_->next();
  }

  Position position() const { return {cursor_->saved()}; }
  /// Goes on with exactly the elements that followed when `position` was taken, provided that files and
  /// functions give what they gave. Throws Error(invalid_argument) for a position of another pipeline.
  void restore(const Position& position) {
    Reader in(position.bytes);
    cursor_->load(in);
    if (in.left() != 0) {
      throw Error(Code::invalid_argument, "this position is of another pipeline: it has " +
                                              std::to_string(in.left()) + " bytes too many");
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
      throw Error(Code::failed_precondition, "an Iterator made of a function cannot start again");
    }

   private:
    data::Kind kind() const noexcept override { return data::Kind::function; }
    void write_state(Writer& out) const override { capstan::write(out, calls_); }
    void read_state(Reader& in) override {
      const auto calls = capstan::read<std::uint64_t>(in);
      if (calls < calls_) {
        throw Error(Code::failed_precondition, "this iterator has given " + std::to_string(calls_) +
                                                   " elements; it cannot go back to " +
                                                   std::to_string(calls));
      }
      this->pass(calls - calls_);
    }
    std::function<std::optional<T>()> next_;
    std::uint64_t calls_ = 0;
  };

  std::unique_ptr<data::Cursor<T>> cursor_;
};

/// The elements of a vector in order, then the end; or for ever.
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
