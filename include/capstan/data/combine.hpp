// combine.hpp -- operators that combine streams: repeat, concatenate, zip.
#pragma once

#include <exception>
#include <tuple>
#include <utility>

#include "capstan/data/operator.hpp"

namespace capstan::data {

/// Repeats the input `count` times; -1: endlessly. Ends early if an iteration has no elements.
template <class T>
class RepeatNode : public PassThrough<RepeatNode<T>, T> {
 public:
  RepeatNode(NodePointer<T> input, std::int64_t count)
      : PassThrough<RepeatNode, T>(std::move(input)), count_(count) {
    require_at_least(count, -1, "repeat: the count");
  }
  Kind kind() const noexcept override { return Kind::repeat; }
  bool endless() const override { return count_ < 0 || (count_ > 0 && this->input_->endless()); }
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
    bool any_ = false;  // this iteration returned an element
  };

  std::int64_t count_;
};

template <class T>
class ConcatenateNode : public ManyInputs<ConcatenateNode<T>, T, T> {
 public:
  using ManyInputs<ConcatenateNode, T, T>::ManyInputs;
  Kind kind() const noexcept override { return Kind::concatenate; }
  BatchInfo batches() const override { return batches_of(this->inputs()); }
  std::unique_ptr<Cursor<T>> open() const override { return std::make_unique<Reading>(this->inputs_); }

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
};

/// One element of each input per element, up to the end of the shortest input.
template <class Out, class... In>
class ZipNode : public Node<Out> {
 public:
  explicit ZipNode(NodePointer<In>... inputs) : inputs_(std::move(inputs)...) {}
  Kind kind() const noexcept override { return Kind::zip; }
  bool endless() const override {
    return std::apply([](const auto&... input) { return (input->endless() && ...); }, inputs_);
  }
  std::vector<OperatorPointer> inputs() const override {
    return std::apply([](const auto&... input) { return std::vector<OperatorPointer>{input...}; }, inputs_);
  }
  OperatorPointer with_inputs(const std::vector<OperatorPointer>& inputs) const override {
    return rebuilt(inputs, std::index_sequence_for<In...>());
  }
  BatchInfo batches() const override { return batches_of(inputs()); }
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
      if (ended_) return std::nullopt;  // without a call of the longer inputs, which may throw
      std::tuple<std::optional<In>...> values;
      std::exception_ptr error;  // the other inputs advance nevertheless, so that later elements match
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
      ended_ = !all;
      if (ended_) return std::nullopt;
      return std::apply([](auto&... value) { return Out(std::move(*value)...); }, values);
    }
    void rewind() override {
      std::apply([](auto&... input) { (input->rewind(), ...); }, inputs_);
      ended_ = false;
    }

   private:
    Kind kind() const noexcept override { return Kind::zip; }
    void write_state(Writer& out) const override {
      capstan::write(out, ended_);
      std::apply([&](const auto&... input) { (input->save(out), ...); }, inputs_);
    }
    void read_state(Reader& in) override {
      ended_ = capstan::read<bool>(in);
      std::apply([&](auto&... input) { (input->load(in), ...); }, inputs_);
    }
    std::tuple<std::unique_ptr<Cursor<In>>...> inputs_;
    bool ended_ = false;
  };

  std::tuple<NodePointer<In>...> inputs_;
};

}  // namespace capstan::data
