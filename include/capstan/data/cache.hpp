// cache.hpp -- keeps the first iteration's elements in memory for all that follow.
#pragma once

#include <mutex>
#include <utility>

#include "capstan/data/operator.hpp"

namespace capstan::data {

/// The first iterator that reaches the end leaves its elements to the iterators made later. A position says
/// where the input began and how many elements were given; in another process the input is read again up to
/// there, since the cache has to be filled anyway.
template <class T>
class CacheNode : public PassThrough<CacheNode<T>, T> {
 public:
  explicit CacheNode(NodePointer<T> input) : PassThrough<CacheNode, T>(std::move(input)) {}
  Kind kind() const noexcept override { return Kind::cache; }
  OperatorPointer with_inputs(const std::vector<OperatorPointer>& inputs) const override {
    return std::make_shared<CacheNode>(node_as<T>(inputs.at(0)));  // other elements, so a cache of its own
  }
  std::unique_ptr<Cursor<T>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), shared_);
  }

 private:
  struct Elements {
    std::vector<std::byte> start;  // where the input stood before the first
    std::vector<T> values;
    std::uint64_t calls = 0;  // of the input; more than values when some threw
  };
  struct Shared {
    std::mutex mutex;
    std::shared_ptr<const Elements> whole;
  };

  class Reading final : public OneInputCursor<T, T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::shared_ptr<Shared> shared)
        : OneInputCursor<T, T>(std::move(input)), shared_(std::move(shared)) {
      const std::lock_guard lock(shared_->mutex);
      whole_ = shared_->whole;
      if (!whole_) begin_filling();
    }
    std::optional<T> next() override {
      if (!whole_ && at_ == filling_->values.size()) {
        ++filling_->calls;
        auto value = this->input_->next();
        if (value) {
          filling_->values.push_back(*value);
          ++at_;
          return value;
        }
        finish();
      }
      const Elements& elements = whole_ ? *whole_ : *filling_;
      if (at_ >= elements.values.size()) return std::nullopt;
      return elements.values[at_++];
    }
    void rewind() override { at_ = 0; }  // what is kept comes from memory, the rest from the input

   private:
    Kind kind() const noexcept override { return Kind::cache; }
    void begin_filling() {
      filling_ = std::make_shared<Elements>();
      filling_->start = this->input_->saved();
    }
    void finish() {
      whole_ = std::move(filling_);
      const std::lock_guard lock(shared_->mutex);
      if (!shared_->whole) shared_->whole = whole_;
    }
    void fill_one() {
      ++filling_->calls;
      try {
        if (auto value = this->input_->next()) filling_->values.push_back(std::move(*value));
      } catch (const std::exception&) {
        // It was thrown once already, before the position was taken.
      }
    }
    void write_state(Writer& out) const override {
      const Elements& elements = whole_ ? *whole_ : *filling_;
      capstan::write(out, elements.start);
      capstan::write(out, elements.calls);
      capstan::write(out, whole_ != nullptr);
      capstan::write(out, at_);
    }
    void read_state(Reader& in) override {
      auto start = capstan::read<std::vector<std::byte>>(in);
      const auto calls = capstan::read<std::uint64_t>(in);
      const bool was_whole = capstan::read<bool>(in);
      const auto at = capstan::read<std::uint64_t>(in);
      if (!whole_ || whole_->start != start) {
        this->input_->load(start);
        whole_ = nullptr;
        begin_filling();
        while (filling_->calls < calls && !(was_whole && filling_->values.size() >= at)) fill_one();
        if (filling_->values.size() < at) {
          throw Error(Code::invalid_argument, "this position is of other data: it has ended early");
        }
      }
      at_ = at;
    }
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<const Elements> whole_;
    std::shared_ptr<Elements> filling_;
    std::uint64_t at_ = 0;
  };

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace capstan::data
