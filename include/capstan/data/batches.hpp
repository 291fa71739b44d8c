// batches.hpp -- what a batch is, and operators that cut batches anew and deal them out to replicas.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <exception>
#include <iterator>
#include <tuple>
#include <utility>

#include "capstan/array.hpp"
#include "capstan/data/operator.hpp"

namespace capstan {

/// Customisation point: how many examples a batch holds, and a part of one. Known for std::vector, Array
/// (along axis 0), and pairs and tuples of batches of one size.
template <class B>
struct BatchOf;

template <class B>
concept Batch = requires(const B& batch, B& whole, B part) {
  { BatchOf<B>::size(batch) } -> std::convertible_to<std::int64_t>;
  { BatchOf<B>::slice(batch, std::int64_t{}, std::int64_t{}) } -> std::same_as<B>;
  BatchOf<B>::append(whole, std::move(part));
};

template <class T>
struct BatchOf<std::vector<T>> {
  static std::int64_t size(const std::vector<T>& batch) { return static_cast<std::int64_t>(batch.size()); }
  static std::vector<T> slice(const std::vector<T>& batch, std::int64_t from, std::int64_t to) {
    return {batch.begin() + from, batch.begin() + to};
  }
  static void append(std::vector<T>& batch, std::vector<T> part) {
    batch.insert(batch.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
};

template <class T>
struct BatchOf<Array<T>> {
  static std::int64_t size(const Array<T>& batch) {
    if (batch.rank() == 0) {
      throw Error(Code::invalid_argument, "a scalar is no batch: batch the dataset before it is distributed");
    }
    return batch.shape[0];
  }
  static Array<T> slice(const Array<T>& batch, std::int64_t from, std::int64_t to) {
    const std::int64_t width = row(batch);
    Shape shape = batch.shape;
    shape[0] = to - from;
    return Array<T>(std::move(shape),
                    {batch.values.begin() + from * width, batch.values.begin() + to * width});
  }
  static void append(Array<T>& batch, Array<T> part) {
    if (!std::equal(batch.shape.begin() + 1, batch.shape.end(), part.shape.begin() + 1, part.shape.end())) {
      throw Error(Code::invalid_argument, "batches of shapes " + to_string(batch.shape) + " and " +
                                              to_string(part.shape) + " do not fit together");
    }
    batch.shape[0] += part.shape[0];
    batch.values.insert(batch.values.end(), part.values.begin(), part.values.end());
  }

 private:
  static std::int64_t row(const Array<T>& batch) {
    return elements_of(Shape(batch.shape.begin() + 1, batch.shape.end()));
  }
};

namespace detail {

template <class Tuple, class... B>
struct TupleBatch {
  static std::int64_t size(const Tuple& batch) {
    const auto sizes = std::apply(
        [](const B&... part) { return std::array<std::int64_t, sizeof...(B)>{BatchOf<B>::size(part)...}; },
        batch);
    for (const std::int64_t other : sizes) {
      if (other != sizes[0]) {
        throw Error(Code::invalid_argument, "the parts of a batch hold " + std::to_string(sizes[0]) +
                                                " and " + std::to_string(other) +
                                                " examples; they must hold as many");
      }
    }
    return sizes[0];
  }
  static Tuple slice(const Tuple& batch, std::int64_t from, std::int64_t to) {
    return std::apply([&](const B&... part) { return Tuple{BatchOf<B>::slice(part, from, to)...}; }, batch);
  }
  static void append(Tuple& batch, Tuple part) { append_parts(batch, part, std::index_sequence_for<B...>()); }

 private:
  template <std::size_t... I>
  static void append_parts(Tuple& batch, Tuple& part, std::index_sequence<I...>) {
    (BatchOf<B>::append(std::get<I>(batch), std::move(std::get<I>(part))), ...);
  }
};

}  // namespace detail

template <Batch A, Batch B>
struct BatchOf<std::pair<A, B>> : detail::TupleBatch<std::pair<A, B>, A, B> {};
template <Batch... B>
struct BatchOf<std::tuple<B...>> : detail::TupleBatch<std::tuple<B...>, B...> {};

}  // namespace capstan

namespace capstan::data {

/// Batches of the sizes given, over and over, whatever the input's are. A size of 0 gives an empty batch. The
/// last may be smaller.
template <Batch T>
class RebatchNode : public OneInput<RebatchNode<T>, T, T> {
 public:
  RebatchNode(NodePointer<T> input, std::vector<std::int64_t> sizes, bool drop_remainder)
      : OneInput<RebatchNode, T, T>(std::move(input)),
        sizes_(std::move(sizes)),
        drop_remainder_(drop_remainder) {
    if (sizes_.empty()) throw Error(Code::invalid_argument, "rebatch: no sizes were given");
    for (const std::int64_t size : sizes_) require_at_least(size, 0, "rebatch: a size");
    if (*std::max_element(sizes_.begin(), sizes_.end()) == 0) {
      throw Error(Code::invalid_argument, "rebatch: all sizes are 0, so it would never end");
    }
  }
  Kind kind() const noexcept override { return Kind::rebatch; }
  BatchInfo batches() const override {
    const bool one_size =
        std::all_of(sizes_.begin(), sizes_.end(), [&](auto size) { return size == sizes_[0]; });
    return {one_size ? sizes_[0] : -1, drop_remainder_};
  }
  OperatorPointer with_pieces(std::int64_t pieces) const override;
  std::unique_ptr<Cursor<T>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), sizes_, drop_remainder_);
  }

 private:
  class Reading final : public OneInputCursor<T, T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::vector<std::int64_t> sizes, bool drop_remainder)
        : OneInputCursor<T, T>(std::move(input)), sizes_(std::move(sizes)), drop_remainder_(drop_remainder) {}
    std::optional<T> next() override {
      const std::int64_t wanted = sizes_[turn_];
      std::optional<T> out;
      // Empty batches are given without looking whether more will follow, as in TensorFlow.
      if (wanted == 0 && (batch_ || pull())) out = BatchOf<T>::slice(*batch_, 0, 0);
      for (std::int64_t got = 0; got < wanted;) {
        if (at_ == size_ && !pull()) {
          if (drop_remainder_) return std::nullopt;
          break;
        }
        const std::int64_t end = std::min(at_ + wanted - got, size_);
        T part = BatchOf<T>::slice(*batch_, at_, end);
        got += end - at_;
        at_ = end;
        if (out) {
          BatchOf<T>::append(*out, std::move(part));
        } else {
          out = std::move(part);
        }
      }
      if (out && wanted > 0 && BatchOf<T>::size(*out) == 0) return std::nullopt;
      if (out) turn_ = (turn_ + 1) % sizes_.size();
      return out;
    }
    void rewind() override {
      this->input_->rewind();
      batch_.reset();
      size_ = at_ = 0;
      turn_ = 0;
    }

   private:
    Kind kind() const noexcept override { return Kind::rebatch; }
    /// The last batch stays where it is at the end.
    bool pull() {
      auto before = this->input_->saved();
      auto batch = this->input_->next();
      if (!batch) return false;
      before_ = std::move(before);
      batch_ = std::move(batch);
      size_ = BatchOf<T>::size(*batch_);
      at_ = 0;
      return true;
    }
    void write_state(Writer& out) const override {
      capstan::write(out, turn_);
      capstan::write(out, at_);
      capstan::write(out, batch_.has_value());
      if (batch_) {
        capstan::write(out, before_);
      } else {
        this->input_->save(out);
      }
    }
    void read_state(Reader& in) override {
      batch_.reset();
      size_ = at_ = 0;
      turn_ = capstan::read<std::uint64_t>(in) % sizes_.size();
      const auto at = capstan::read<std::int64_t>(in);
      if (!capstan::read<bool>(in)) {
        this->input_->load(in);
        return;
      }
      this->input_->load(capstan::read<std::vector<std::byte>>(in));
      if (!pull() || at < 0 || at > size_) {
        throw Error(Code::invalid_argument, "this position is of other data: it has ended early");
      }
      at_ = at;
    }
    std::vector<std::int64_t> sizes_;
    bool drop_remainder_;
    std::uint64_t turn_ = 0;
    std::vector<std::byte> before_;  // where the input stood before batch_
    std::optional<T> batch_;
    std::int64_t size_ = 0, at_ = 0;  // of batch_; what is before at_ was given
  };

  std::vector<std::int64_t> sizes_;
  bool drop_remainder_;
};

/// Each batch in `pieces`, all of the size of the first, rounded up: the last may be smaller or empty.
template <Batch T>
class LegacyRebatchNode : public OneInput<LegacyRebatchNode<T>, T, T> {
 public:
  LegacyRebatchNode(NodePointer<T> input, std::int64_t pieces)
      : OneInput<LegacyRebatchNode, T, T>(std::move(input)), pieces_(pieces) {
    require_at_least(pieces, 1, "rebatch: the number of pieces");
  }
  Kind kind() const noexcept override { return Kind::legacy_rebatch; }
  OperatorPointer with_pieces(std::int64_t pieces) const override {
    return std::make_shared<LegacyRebatchNode>(this->input_, pieces);
  }
  std::unique_ptr<Cursor<T>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), pieces_);
  }

 private:
  class Reading final : public OneInputCursor<T, T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::int64_t pieces)
        : OneInputCursor<T, T>(std::move(input)), pieces_(pieces) {}
    std::optional<T> next() override {
      if (!batch_ && !pull()) return std::nullopt;
      const std::int64_t size = BatchOf<T>::size(*batch_);
      const std::int64_t piece = (size + pieces_ - 1) / pieces_;
      const std::int64_t from = std::min(piece * given_, size);
      T part = BatchOf<T>::slice(*batch_, from, std::min(from + piece, size));
      if (++given_ == pieces_) batch_.reset();
      return part;
    }
    void rewind() override {
      this->input_->rewind();
      batch_.reset();
    }

   private:
    Kind kind() const noexcept override { return Kind::legacy_rebatch; }
    bool pull() {
      auto before = this->input_->saved();
      batch_ = this->input_->next();
      before_ = std::move(before);
      given_ = 0;
      return batch_.has_value();
    }
    void write_state(Writer& out) const override {
      capstan::write(out, batch_ ? given_ : 0);
      if (batch_) {
        capstan::write(out, before_);
      } else {
        this->input_->save(out);
      }
    }
    void read_state(Reader& in) override {
      batch_.reset();
      const auto given = capstan::read<std::int64_t>(in);
      if (given == 0) {
        this->input_->load(in);
        return;
      }
      this->input_->load(capstan::read<std::vector<std::byte>>(in));
      if (!pull()) throw Error(Code::invalid_argument, "this position is of other data: it has ended early");
      given_ = given;
    }
    std::int64_t pieces_, given_ = 0;
    std::vector<std::byte> before_;
    std::optional<T> batch_;
  };

  std::int64_t pieces_;
};

template <Batch T>
OperatorPointer RebatchNode<T>::with_pieces(std::int64_t pieces) const {
  return std::make_shared<LegacyRebatchNode<T>>(this->input_, pieces);
}

/// A step in which some replicas have no element: with empty batches in their place. Nothing when no replica
/// has an example, or when elements are no batches.
template <class T>
std::optional<std::vector<T>> filled(std::vector<std::optional<T>> parts) {
  if constexpr (Batch<T>) {
    std::optional<T> empty;
    bool any = false;
    for (const auto& part : parts) {
      if (!part) continue;
      if (!empty) empty = BatchOf<T>::slice(*part, 0, 0);
      any = any || BatchOf<T>::size(*part) > 0;
    }
    if (!any) return std::nullopt;
    std::vector<T> step;
    for (auto& part : parts) step.push_back(part ? std::move(*part) : *empty);
    return step;
  } else {
    return std::nullopt;
  }
}

/// `size` elements at a time, one a replica. At the end, replicas without an element get an empty batch;
/// where there is no such thing (elements that are no batches, or batches that are always full) the elements
/// left over are dropped. A last step of empty batches alone is no step.
template <class T>
class GroupNode : public OneInput<GroupNode<T>, T, std::vector<T>> {
 public:
  GroupNode(NodePointer<T> input, std::int64_t size)
      : OneInput<GroupNode, T, std::vector<T>>(std::move(input)), size_(size) {
    require_at_least(size, 1, "the number of replicas");
  }
  Kind kind() const noexcept override { return Kind::group; }
  std::unique_ptr<Cursor<std::vector<T>>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), static_cast<std::size_t>(size_),
                                     !this->input_->batches().always_full);
  }

 private:
  class Reading final : public OneInputCursor<T, std::vector<T>> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::size_t size, bool fill)
        : OneInputCursor<T, std::vector<T>>(std::move(input)), size_(size), fill_(fill) {}
    std::optional<std::vector<T>> next() override {
      std::vector<T> group;
      group.reserve(size_);
      while (group.size() < size_) {
        auto value = this->input_->next();
        if (!value) return partial(std::move(group));
        group.push_back(std::move(*value));
      }
      return group;
    }

   private:
    Kind kind() const noexcept override { return Kind::group; }
    std::optional<std::vector<T>> partial(std::vector<T> group) const {
      std::vector<std::optional<T>> parts(std::make_move_iterator(group.begin()),
                                          std::make_move_iterator(group.end()));
      parts.resize(size_);
      return fill_ ? filled(std::move(parts)) : std::nullopt;
    }
    std::size_t size_;
    bool fill_;
  };

  std::int64_t size_;
};

/// One element of each input: a pipeline for each replica. Goes on until all have ended, unless batches are
/// always full.
template <class T>
class SideBySideNode : public Node<std::vector<T>> {
 public:
  explicit SideBySideNode(std::vector<NodePointer<T>> inputs) : inputs_(std::move(inputs)) {}
  Kind kind() const noexcept override { return Kind::side_by_side; }
  std::vector<OperatorPointer> inputs() const override { return {inputs_.begin(), inputs_.end()}; }
  OperatorPointer with_inputs(const std::vector<OperatorPointer>& inputs) const override {
    std::vector<NodePointer<T>> typed;
    for (const auto& input : inputs) typed.push_back(node_as<T>(input));
    return std::make_shared<SideBySideNode>(std::move(typed));
  }
  std::unique_ptr<Cursor<std::vector<T>>> open() const override { return std::make_unique<Reading>(inputs_); }

 private:
  class Reading final : public Cursor<std::vector<T>> {
   public:
    explicit Reading(const std::vector<NodePointer<T>>& nodes) {
      for (const auto& node : nodes) {
        inputs_.push_back(node->open());
        fill_ = fill_ && !node->batches().always_full;
      }
    }
    std::optional<std::vector<T>> next() override {
      std::vector<std::optional<T>> parts;
      std::exception_ptr error;  // the others go on all the same, so that they stay in step
      for (auto& input : inputs_) {
        parts.emplace_back();
        try {
          parts.back() = input->next();
        } catch (...) {
          if (!error) error = std::current_exception();
        }
      }
      if (error) std::rethrow_exception(error);
      if (!std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.has_value(); })) {
        return fill_ ? filled(std::move(parts)) : std::nullopt;
      }
      std::vector<T> step;
      for (auto& part : parts) step.push_back(std::move(*part));
      return step;
    }
    void rewind() override {
      for (auto& input : inputs_) input->rewind();
    }

   private:
    Kind kind() const noexcept override { return Kind::side_by_side; }
    void write_state(Writer& out) const override {
      for (const auto& input : inputs_) input->save(out);
    }
    void read_state(Reader& in) override {
      for (auto& input : inputs_) input->load(in);
    }
    std::vector<std::unique_ptr<Cursor<T>>> inputs_;
    bool fill_ = true;
  };

  std::vector<NodePointer<T>> inputs_;
};

}  // namespace capstan::data
