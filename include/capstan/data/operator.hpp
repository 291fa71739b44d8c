// operator.hpp -- Operator, a step of a dataset's pipeline, and Cursor, which reads from it.
//
// A pipeline is a tree of immutable operators whose leaves are sources. Operators expose enough properties
// for sharding to rewrite a pipeline (capstan/input.hpp) without knowing the types of its elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

template <>
struct Serializer<std::filesystem::path> {
  static void write(Writer& out, const std::filesystem::path& path) { capstan::write(out, path.string()); }
  static std::filesystem::path read(Reader& in) { return capstan::read<std::string>(in); }
};

}  // namespace capstan

namespace capstan::data {

/// Stored in positions: add at the end, never renumber.
enum class Kind : std::uint8_t {
  vector = 0,
  range = 1,
  generator = 2,
  files = 3,       // a reader: yields the contents of files
  file_names = 4,  // yields file names, for an interleave that opens them
  map = 5,
  filter = 6,
  shuffle = 7,
  batch = 8,
  repeat = 9,
  take = 10,
  skip = 11,
  shard = 12,
  interleave = 13,
  concatenate = 14,
  zip = 15,
  prefetch = 16,
  cache = 17,
  transform = 18,  // an arbitrary function from stream to stream
  rebatch = 19,
  legacy_rebatch = 20,
  group = 21,
  function = 22,  // an Iterator made from a plain function
  file = 23,      // one file of a reader
  side_by_side = 24,
};

CAPSTAN_API std::string_view to_string(Kind kind) noexcept;

/// Properties of a pipeline's elements that are known without reading one.
struct BatchInfo {
  std::int64_t size = -1;    // of every batch except a partial last one; -1: unknown, or not batches
  bool always_full = false;  // no partial batch at the end
};

class Operator;
using OperatorPointer = std::shared_ptr<const Operator>;
using Paths = std::vector<std::filesystem::path>;

/// How another rank makes an operator: by a function that every rank with the same binary registers
/// (RegisteredMaker). The function's parameters are one dataset per input, then the values that
/// `write_arguments` writes.
struct Recipe {
  const std::uint32_t* function = nullptr;  // valid once static initialization is complete
  std::function<void(Writer&)> write_arguments = {};
};

class CAPSTAN_API Operator : public std::enable_shared_from_this<Operator> {
 public:
  virtual ~Operator();

  /// Must be called before the operator is shared.
  void set_recipe(Recipe recipe) { recipe_ = std::move(recipe); }
  /// Appends a description from which read<Dataset<T>> recreates this pipeline on any rank with this binary.
  /// Throws Error(invalid_argument) naming the first operator that has no recipe.
  void describe(Writer& out) const;

  virtual Kind kind() const noexcept = 0;
  virtual std::vector<OperatorPointer> inputs() const { return {}; }
  virtual BatchInfo batches() const { return {}; }
  /// Returns true if an operator of the pipeline repeats its input endlessly, and no later one ends it.
  /// Returns false for an endless generator.
  virtual bool endless() const;
  /// The files of a reader or of file_names; empty for all others.
  virtual Paths files() const { return {}; }

  /// The same operator on other inputs, of the same number and element types.
  virtual OperatorPointer with_inputs(const std::vector<OperatorPointer>&) const {
    return shared_from_this();
  }
  /// The same reader for other files; null for operators that are not readers.
  virtual OperatorPointer with_files(Paths) const { return nullptr; }
  /// Returns an operator with elements index, index + count, ... of this one. With `each_has_one`, a shard
  /// that has an element throws Error(invalid_argument) if there are fewer elements than `count`.
  virtual OperatorPointer sharded(std::int64_t count, std::int64_t index, bool each_has_one) const = 0;
  /// For a shard operator with placeholders (kShardHint): the same operator with this count and index. Null
  /// for all other operators.
  virtual OperatorPointer with_shard(std::int64_t, std::int64_t) const { return nullptr; }
  /// For a rebatch: an operator that cuts each batch into this number of pieces instead. Null for all other
  /// operators.
  virtual OperatorPointer with_pieces(std::int64_t) const { return nullptr; }

 protected:
  Operator() = default;
  Operator(const Operator&) = default;
  Operator& operator=(const Operator&) = default;

 private:
  Recipe recipe_;
};

/// Reads a pipeline once, or again after each `rewind`. One thread at a time.
template <class T>
class Cursor {
 public:
  virtual ~Cursor() = default;
  Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  /// Returns nullopt at the end and thereafter. If it throws, the error takes the place of one element,
  /// unless documented otherwise.
  virtual std::optional<T> next() = 0;
  /// Starts the next iteration; the order of a shuffle may change.
  virtual void rewind() = 0;

  /// Serializes the position; `load`, also by another cursor of the same pipeline, resumes from it. `load`
  /// throws Error(invalid_argument) for a position of another pipeline.
  void save(Writer& out) const {
    capstan::write(out, kind());
    write_state(out);
  }
  void load(Reader& in) {
    const auto found = capstan::read<Kind>(in);
    if (found != kind()) {
      throw Error(Code::invalid_argument, "position of another pipeline: found '" +
                                              std::string(to_string(found)) + "', expected '" +
                                              std::string(to_string(kind())) + "'");
    }
    read_state(in);
  }
  std::vector<std::byte> saved() const {
    Writer out;
    save(out);
    return out.take();
  }
  void load(const std::vector<std::byte>& bytes) {
    Reader in(bytes);
    load(in);
  }

  /// Makes `calls` calls of next(), ignoring results and errors.
  void pass(std::uint64_t calls) {
    for (; calls > 0; --calls) {
      try {
        (void)next();
      } catch (const std::exception&) {
        // The error was already thrown before the position was saved.
      }
    }
  }

 private:
  virtual Kind kind() const noexcept = 0;
  virtual void write_state(Writer& out) const = 0;
  virtual void read_state(Reader& in) = 0;
};

template <class T>
class Node : public Operator {
 public:
  virtual std::unique_ptr<Cursor<T>> open() const = 0;
  OperatorPointer sharded(std::int64_t count, std::int64_t index, bool each_has_one) const override;
};

template <class T>
using NodePointer = std::shared_ptr<const Node<T>>;

template <class T>
NodePointer<T> node_as(const OperatorPointer& node) {
  auto typed = std::dynamic_pointer_cast<const Node<T>>(node);
  if (!typed) throw Error(Code::internal, "pipeline operator: found an input with another element type");
  return typed;
}

/// An operator with one input. Replacing the input copies `Derived`.
template <class Derived, class In, class Out>
class OneInput : public Node<Out> {
 public:
  explicit OneInput(NodePointer<In> input) : input_(std::move(input)) {}
  std::vector<OperatorPointer> inputs() const override { return {input_}; }
  OperatorPointer with_inputs(const std::vector<OperatorPointer>& inputs) const override {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    copy->input_ = node_as<In>(inputs.at(0));
    return copy;
  }

 protected:
  NodePointer<In> input_;
};

/// An operator with any number of inputs of one type. `Derived` is constructed from them.
template <class Derived, class In, class Out>
class ManyInputs : public Node<Out> {
 public:
  explicit ManyInputs(std::vector<NodePointer<In>> inputs) : inputs_(std::move(inputs)) {}
  std::vector<OperatorPointer> inputs() const override { return {inputs_.begin(), inputs_.end()}; }
  OperatorPointer with_inputs(const std::vector<OperatorPointer>& inputs) const override {
    std::vector<NodePointer<In>> typed;
    for (const auto& input : inputs) typed.push_back(node_as<In>(input));
    return std::make_shared<Derived>(std::move(typed));
  }

 protected:
  std::vector<NodePointer<In>> inputs_;
};

/// Returns the properties of an operator whose elements are elements of one of the inputs, or combine one
/// element of every input.
CAPSTAN_API BatchInfo batches_of(const std::vector<OperatorPointer>& inputs);

/// Base of operators that do not change batches.
template <class Derived, class T>
class PassThrough : public OneInput<Derived, T, T> {
 public:
  using OneInput<Derived, T, T>::OneInput;
  BatchInfo batches() const override { return this->input_->batches(); }
};

template <class In, class Out>
class OneInputCursor : public Cursor<Out> {
 public:
  explicit OneInputCursor(std::unique_ptr<Cursor<In>> input) : input_(std::move(input)) {}
  void rewind() override { input_->rewind(); }

 protected:
  void write_state(Writer& out) const override { input_->save(out); }
  void read_state(Reader& in) override { input_->load(in); }
  std::unique_ptr<Cursor<In>> input_;
};

/// Throws Error(invalid_argument) if value < least: "batch: the size is 0; it must be 1 or more". `what`
/// names the value.
CAPSTAN_API void require_at_least(std::int64_t value, std::int64_t least, const char* what);

}  // namespace capstan::data
