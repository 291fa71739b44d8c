// combine.hpp -- operators over whole streams: repeat, concatenate, zip, interleave, transform.
#pragma once

#include <exception>
#include <functional>
#include <tuple>
#include <utility>

#include "capstan/data/operator.hpp"
#include "capstan/data/sources.hpp"

namespace capstan::data {

/// `count` iterations of the input; -1 for ever. An iteration that gives nothing is the end of it.
template <class T>
class RepeatNode : public PassThrough<RepeatNode<T>, T> {
 public:
  RepeatNode(NodePointer<T> input, std::int64_t count)
      : PassThrough<RepeatNode, T>(std::move(input)), count_(count) {
    require_at_least(count, -1, "repeat: the count");
  }
  Kind kind() const noexcept override { return Kind::repeat; }
  std::unique_ptr<Cursor<T>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), count_);
  }

 private:
  class Reading final : public OneInputCursor<T, T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::int64_t count)
        : OneInputCursor<T, T>(std::move(input)), count_(count) {}
    std::optional<T> next() override {
      while (count_ < 0 || done_ < count_) {
        if (auto value = this->input_->next()) {
          any_ = true;
          return value;
        }
        if (!any_ || done_ + 1 == count_) return std::nullopt;
        ++done_;
        any_ = false;
        this->input_->rewind();
      }
      return std::nullopt;
    }
    void rewind() override {
      this->input_->rewind();
      done_ = 0;
      any_ = false;
    }

   private:
    Kind kind() const noexcept override { return Kind::repeat; }
    void write_state(Writer& out) const override {
      capstan::write(out, done_);
      capstan::write(out, any_);
      this->input_->save(out);
    }
    void read_state(Reader& in) override {
      done_ = capstan::read<std::int64_t>(in);
      any_ = capstan::read<bool>(in);
      this->input_->load(in);
    }
    std::int64_t count_, done_ = 0;
    bool any_ = false;  // this iteration gave something
  };

  std::int64_t count_;
};

template <class T>
class ConcatenateNode : public Node<T> {
 public:
  explicit ConcatenateNode(std::vector<NodePointer<T>> inputs) : inputs_(std::move(inputs)) {}
  Kind kind() const noexcept override { return Kind::concatenate; }
  std::vector<OperatorPointer> inputs() const override { return {inputs_.begin(), inputs_.end()}; }
  OperatorPointer with_inputs(const std::vector<OperatorPointer>& inputs) const override {
    std::vector<NodePointer<T>> typed;
    for (const auto& input : inputs) typed.push_back(node_as<T>(input));
    return std::make_shared<ConcatenateNode>(std::move(typed));
  }
  BatchInfo batches() const override {
    BatchInfo all = inputs_[0]->batches();
    for (const auto& input : inputs_) {
      const BatchInfo one = input->batches();
      if (one.size != all.size) return {};
      all.always_full = all.always_full && one.always_full;
    }
    return all;
  }
  std::unique_ptr<Cursor<T>> open() const override { return std::make_unique<Reading>(inputs_); }

 private:
  class Reading final : public Cursor<T> {
   public:
    explicit Reading(const std::vector<NodePointer<T>>& nodes) {
      for (const auto& node : nodes) inputs_.push_back(node->open());
    }
    std::optional<T> next() override {
      for (; at_ < inputs_.size(); ++at_) {
        if (auto value = inputs_[at_]->next()) return value;
      }
      return std::nullopt;
    }
    void rewind() override {
      for (auto& input : inputs_) input->rewind();
      at_ = 0;
    }

   private:
    Kind kind() const noexcept override { return Kind::concatenate; }
    void write_state(Writer& out) const override {
      capstan::write(out, at_);
      for (const auto& input : inputs_) input->save(out);
    }
    void read_state(Reader& in) override {
      at_ = capstan::read<std::uint64_t>(in);
      for (auto& input : inputs_) input->load(in);
    }
    std::vector<std::unique_ptr<Cursor<T>>> inputs_;
    std::uint64_t at_ = 0;
  };

  std::vector<NodePointer<T>> inputs_;
};

/// One element of each input, as long as all have one.
template <class Out, class... In>
class ZipNode : public Node<Out> {
 public:
  explicit ZipNode(NodePointer<In>... inputs) : inputs_(std::move(inputs)...) {}
  Kind kind() const noexcept override { return Kind::zip; }
  std::vector<OperatorPointer> inputs() const override {
    return std::apply([](const auto&... input) { return std::vector<OperatorPointer>{input...}; }, inputs_);
  }
  OperatorPointer with_inputs(const std::vector<OperatorPointer>& inputs) const override {
    return rebuilt(inputs, std::index_sequence_for<In...>());
  }
  BatchInfo batches() const override {
    const auto all = inputs();
    BatchInfo info = all[0]->batches();
    for (const auto& input : all) {
      const BatchInfo one = input->batches();
      if (one.size != info.size) return {};
      info.always_full = info.always_full && one.always_full;
    }
    return info;
  }
  std::unique_ptr<Cursor<Out>> open() const override { return std::make_unique<Reading>(inputs_); }

 private:
  template <std::size_t... I>
  static OperatorPointer rebuilt(const std::vector<OperatorPointer>& inputs, std::index_sequence<I...>) {
    return std::make_shared<ZipNode>(node_as<In>(inputs.at(I))...);
  }

  class Reading final : public Cursor<Out> {
   public:
    explicit Reading(const std::tuple<NodePointer<In>...>& nodes)
        : inputs_(std::apply(
              [](const auto&... node) { return std::tuple<std::unique_ptr<Cursor<In>>...>{node->open()...}; },
              nodes)) {}
    std::optional<Out> next() override {
      std::tuple<std::optional<In>...> values;
      std::exception_ptr error;  // the others go on all the same, so that they stay in step
      const auto pull = [&error](auto& input, auto& value) {
        try {
          value = input->next();
        } catch (...) {
          if (!error) error = std::current_exception();
        }
      };
      std::apply(
          [&](auto&... input) { std::apply([&](auto&... value) { (pull(input, value), ...); }, values); },
          inputs_);
      if (error) std::rethrow_exception(error);
      const bool all = std::apply([](const auto&... value) { return (... && value.has_value()); }, values);
      if (!all) return std::nullopt;
      return std::apply([](auto&... value) { return Out(std::move(*value)...); }, values);
    }
    void rewind() override {
      std::apply([](auto&... input) { (input->rewind(), ...); }, inputs_);
    }

   private:
    Kind kind() const noexcept override { return Kind::zip; }
    void write_state(Writer& out) const override {
      std::apply([&](const auto&... input) { (input->save(out), ...); }, inputs_);
    }
    void read_state(Reader& in) override {
      std::apply([&](auto&... input) { (input->load(in), ...); }, inputs_);
    }
    std::tuple<std::unique_ptr<Cursor<In>>...> inputs_;
  };

  std::tuple<NodePointer<In>...> inputs_;
};

/// Makes a pipeline of each of `cycle` elements and takes `block` elements from each in turn. One that ends
/// is replaced by the next element's when its turn comes again, as in TensorFlow.
template <class In, class Out>
class InterleaveNode : public OneInput<InterleaveNode<In, Out>, In, Out> {
 public:
  using Make = std::function<NodePointer<Out>(In)>;
  InterleaveNode(NodePointer<In> input, Make make, std::int64_t cycle, std::int64_t block)
      : OneInput<InterleaveNode, In, Out>(std::move(input)),
        make_(std::move(make)),
        cycle_(cycle),
        block_(block) {
    require_at_least(cycle, 1, "interleave: the cycle length");
    require_at_least(block, 1, "interleave: the block length");
  }
  Kind kind() const noexcept override { return Kind::interleave; }
  std::unique_ptr<Cursor<Out>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), make_, cycle_, block_);
  }

 private:
  class Reading final : public OneInputCursor<In, Out> {
   public:
    Reading(std::unique_ptr<Cursor<In>> input, Make make, std::int64_t cycle, std::int64_t block)
        : OneInputCursor<In, Out>(std::move(input)),
          make_(std::move(make)),
          slots_(static_cast<std::size_t>(cycle)),
          block_(static_cast<std::uint64_t>(block)) {}
    std::optional<Out> next() override {
      while (!ended_ || open_ > 0) {
        Slot& slot = slots_[at_];
        if (slot.cursor) {
          if (auto value = slot.cursor->next()) {
            if (++taken_ == block_) turn();
            return value;
          }
          slot.cursor.reset();
          --open_;
          turn();
        } else if (!ended_) {
          fill(slot);
        } else {
          turn();
        }
      }
      return std::nullopt;
    }
    void rewind() override {
      this->input_->rewind();
      clear();
    }

   private:
    /// The cursor of one element; `before` is where the input stood before that element.
    struct Slot {
      std::vector<std::byte> before;
      std::unique_ptr<Cursor<Out>> cursor;
    };

    Kind kind() const noexcept override { return Kind::interleave; }
    void turn() {
      taken_ = 0;
      at_ = (at_ + 1) % slots_.size();
    }
    void fill(Slot& slot) {
      auto before = this->input_->saved();
      auto element = this->input_->next();
      if (!element) {
        ended_ = true;
        return;
      }
      slot.cursor = make_(std::move(*element))->open();
      slot.before = std::move(before);
      ++open_;
    }
    void clear() {
      for (Slot& slot : slots_) slot = {};
      at_ = taken_ = open_ = 0;
      ended_ = false;
    }
    void write_state(Writer& out) const override {
      capstan::write(out, at_);
      capstan::write(out, taken_);
      capstan::write(out, ended_);
      capstan::write(out, std::uint64_t{slots_.size()});
      for (const Slot& slot : slots_) {
        capstan::write(out, slot.cursor != nullptr);
        if (!slot.cursor) continue;
        capstan::write(out, slot.before);
        slot.cursor->save(out);
      }
      this->input_->save(out);
    }
    void read_state(Reader& in) override {
      clear();
      at_ = capstan::read<std::uint64_t>(in);
      taken_ = capstan::read<std::uint64_t>(in);
      const bool ended = capstan::read<bool>(in);
      const auto slots = capstan::read<std::uint64_t>(in);
      if (slots != slots_.size() || at_ >= slots) {
        throw Error(Code::invalid_argument, "this position is of an interleave of " + std::to_string(slots) +
                                                ", this one is of " + std::to_string(slots_.size()));
      }
      for (Slot& slot : slots_) {
        if (!capstan::read<bool>(in)) continue;
        this->input_->load(capstan::read<std::vector<std::byte>>(in));
        fill(slot);
        if (!slot.cursor)
          throw Error(Code::invalid_argument, "this position is of other data: it has ended early");
        slot.cursor->load(in);
      }
      ended_ = ended;
      this->input_->load(in);
    }
    Make make_;
    std::vector<Slot> slots_;
    std::uint64_t block_;
    std::uint64_t at_ = 0, taken_ = 0, open_ = 0;
    bool ended_ = false;
  };

  Make make_;
  std::int64_t cycle_, block_;
};

/// Any function from a stream to a stream. A position is the number of calls and where the input began.
template <class In, class Out>
class TransformNode : public OneInput<TransformNode<In, Out>, In, Out> {
 public:
  using Make = std::function<Next<Out>(Next<In>)>;
  TransformNode(NodePointer<In> input, Make make)
      : OneInput<TransformNode, In, Out>(std::move(input)), make_(std::move(make)) {}
  Kind kind() const noexcept override { return Kind::transform; }
  std::unique_ptr<Cursor<Out>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), make_);
  }

 private:
  class Reading final : public OneInputCursor<In, Out> {
   public:
    Reading(std::unique_ptr<Cursor<In>> input, Make make)
        : OneInputCursor<In, Out>(std::move(input)), make_(std::move(make)) {
      begin();
    }
    std::optional<Out> next() override {
      if (ended_) return std::nullopt;
      if (!next_) next_ = make_([this] { return this->input_->next(); });
      ++calls_;
      auto value = next_();
      ended_ = !value;
      return value;
    }
    void rewind() override {
      this->input_->rewind();
      begin();
    }

   private:
    Kind kind() const noexcept override { return Kind::transform; }
    void begin() {
      next_ = nullptr;
      start_ = this->input_->saved();
      calls_ = 0;
      ended_ = false;
    }
    void write_state(Writer& out) const override {
      capstan::write(out, start_);
      capstan::write(out, calls_);
    }
    void read_state(Reader& in) override {
      this->input_->load(capstan::read<std::vector<std::byte>>(in));
      begin();
      this->pass(capstan::read<std::uint64_t>(in));
    }
    Make make_;
    Next<Out> next_;
    std::vector<std::byte> start_;
    std::uint64_t calls_ = 0;
    bool ended_ = false;
  };

  Make make_;
};

}  // namespace capstan::data
