// operator.hpp -- one step of a dataset's pipeline: what it says of itself, and what reads from it.
//
// A pipeline is a tree of immutable operators with sources as its leaves. Operators say enough of themselves
// for sharding to rewrite a pipeline (capstan/input.hpp) without knowing what type of element passes through.
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
  files = 3,       // a reader: elements come out of files
  file_names = 4,  // the names themselves, for an interleave that opens them
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
  transform = 18,  // a function from stream to stream: nobody can see through it
  rebatch = 19,
  legacy_rebatch = 20,
  group = 21,
  function = 22,  // an Iterator made of a plain function
  file = 23,      // one file of a reader
  side_by_side = 24,
};

CAPSTAN_API std::string_view to_string(Kind kind) noexcept;

/// What is known of a pipeline's elements without reading one.
struct BatchInfo {
  std::int64_t size = -1;  // of every batch but perhaps the last; -1 when elements are no batches, or unknown
  bool always_full = false;  // no partial batch at the end
};

class Operator;
using OperatorPointer = std::shared_ptr<const Operator>;
using Paths = std::vector<std::filesystem::path>;

/// How another rank makes an operator: by a function that every rank of the binary has (RegisteredMaker). Its
/// parameters are a dataset for each input, and then what `write_arguments` writes.
struct Recipe {
  const std::uint32_t* function = nullptr;  // which is not known before the program is loaded
  std::function<void(Writer&)> write_arguments = {};
};

class CAPSTAN_API Operator : public std::enable_shared_from_this<Operator> {
 public:
  virtual ~Operator();

  /// Before it is shared.
  void set_recipe(Recipe recipe) { recipe_ = std::move(recipe); }
  /// Appends what read<Dataset<T>> makes this pipeline of, on any rank of the binary. Throws
  /// Error(invalid_argument) naming the operator for one that has no recipe.
  void describe(Writer& out) const;

  virtual Kind kind() const noexcept = 0;
  virtual std::vector<OperatorPointer> inputs() const { return {}; }
  virtual BatchInfo batches() const { return {}; }
  /// It repeats what it is given without an end. A generator may be endless and is not known to be.
  virtual bool endless() const;
  /// Of a reader, or of file_names.
  virtual Paths files() const { return {}; }

  /// The same operator on other inputs, as many as it has, of the same types of element.
  virtual OperatorPointer with_inputs(const std::vector<OperatorPointer>&) const {
    return shared_from_this();
  }
  /// The same reader of other files.
  virtual OperatorPointer with_files(Paths) const { return nullptr; }
  /// Elements index, index + count, ... of this one. With `each_has_one`, a shard that has an element throws
  /// Error(invalid_argument) when there are fewer than `count`.
  virtual OperatorPointer sharded(std::int64_t count, std::int64_t index, bool each_has_one) const = 0;
  /// A shard whose numbers were left open (kShardHint), with them filled in; null for all others.
  virtual OperatorPointer with_shard(std::int64_t, std::int64_t) const { return nullptr; }
  /// A rebatch as one that cuts each batch into `pieces`; null for all others.
  virtual OperatorPointer with_pieces(std::int64_t) const { return nullptr; }

 protected:
  Operator() = default;
  Operator(const Operator&) = default;
  Operator& operator=(const Operator&) = default;

 private:
  Recipe recipe_;
};

/// Reads a pipeline once, or again after `rewind`. One thread at a time.
template <class T>
class Cursor {
 public:
  virtual ~Cursor() = default;
  Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  /// Nothing at the end, and from then on. What it throws belongs to one element unless said otherwise.
  virtual std::optional<T> next() = 0;
  /// Starts the next iteration: shuffles may give another order.
  virtual void rewind() = 0;

  /// Where it stands, as bytes; `load` of another cursor of the same pipeline goes on from there.
  void save(Writer& out) const {
    capstan::write(out, kind());
    write_state(out);
  }
  void load(Reader& in) {
    const auto found = capstan::read<Kind>(in);
    if (found != kind()) {
      throw Error(Code::invalid_argument, "this position is of another pipeline: it has '" +
                                              std::string(to_string(found)) + "' where this one has '" +
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

  /// Goes on by `calls` calls of next(), whatever they give or throw.
  void pass(std::uint64_t calls) {
    for (; calls > 0; --calls) {
      try {
        (void)next();
      } catch (const std::exception&) {
        // It was thrown once already, before the position was taken.
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
  if (!typed) throw Error(Code::internal, "an operator was given an input of another type of element");
  return typed;
}

/// An operator with one input. `Derived` is copied when its input changes.
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

/// An operator with any number of inputs of one type. `Derived` is made of them.
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

/// What is known of elements of which each is made of one element of every input, or is one of theirs.
CAPSTAN_API BatchInfo batches_of(const std::vector<OperatorPointer>& inputs);

/// For operators that let batches pass as they are.
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

/// Error(invalid_argument) "batch: the size is 0; it must be 1 or more".
CAPSTAN_API void require_at_least(std::int64_t value, std::int64_t least, const char* what);

}  // namespace capstan::data
