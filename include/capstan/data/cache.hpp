// cache.hpp -- stores the elements of the first iteration in memory for later ones.
#pragma once

#include <mutex>
#include <utility>

#include "capstan/data/operator.hpp"

namespace capstan::data {

/// The first iterator that reaches the end shares its elements with iterators made later. A position holds
/// the input's position at the start and the number of elements returned; another process reads the input
/// again up to there, since it must fill the cache anyway.
template <class T>
class CacheNode : public PassThrough<CacheNode<T>, T> {
 public:
  explicit CacheNode(NodePointer<T> input) : PassThrough<CacheNode, T>(std::move(input)) {}
  Kind kind() const noexcept override { return Kind::cache; }
  OperatorPointer with_inputs(const std::vector<OperatorPointer>& inputs) const override {
    return std::make_shared<CacheNode>(node_as<T>(inputs.at(0)));  // a new cache, as elements may differ
  }
  std::unique_ptr<Cursor<T>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), shared_);
  }

 private:
  struct Elements {
    std::vector<std::byte> start;  // position of the input before the first element
    std::vector<T> values;
    std::uint64_t calls = 0;  // of the input's next(); more than values if some calls threw
  };
  struct Shared {
    std::mutex mutex;
    std::shared_ptr<const Elements> complete;
  };

  class Reading final : public OneInputCursor<T, T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::shared_ptr<Shared> shared)
        : OneInputCursor<T, T>(std::move(input)), shared_(std::move(shared)) {
      const std::lock_guard lock(shared_->mutex);
      complete_ = shared_->complete;
      if (!complete_) begin_filling();
    }
    std::optional<T> next() override {
      if (!complete_ && at_ == filling_->values.size()) {
        ++filling_->calls;
        auto value = this->input_->next();
        if (value) {
          filling_->values.push_back(*value);
          ++at_;
          return value;
        }
        finish();
      }
      const Elements& elements = complete_ ? *complete_ : *filling_;
      if (at_ >= elements.values.size()) return std::nullopt;
      return elements.values[at_++];
    }
    void rewind() override { at_ = 0; }  // reads cached elements, then the input

   private:
    Kind kind() const noexcept override { return Kind::cache; }
    void begin_filling() {
      filling_ = std::make_shared<Elements>();
      filling_->start = this->input_->saved();
    }
    void finish() {
      complete_ = std::move(filling_);
      const std::lock_guard lock(shared_->mutex);
      if (!shared_->complete) shared_->complete = complete_;
    }
    void fill_one() {
      ++filling_->calls;
      try {
        if (auto value = this->input_->next()) filling_->values.push_back(std::move(*value));
      } catch (const std::exception&) {
        // The error was already thrown before the position was saved.
      }
    }
    void write_state(Writer& out) const override {
      const Elements& elements = complete_ ? *complete_ : *filling_;
      capstan::write(out, elements.start);
      capstan::write(out, elements.calls);
      capstan::write(out, complete_ != nullptr);
      capstan::write(out, at_);
    }
    void read_state(Reader& in) override {
      auto start = capstan::read<std::vector<std::byte>>(in);
      const auto calls = capstan::read<std::uint64_t>(in);
      const bool was_complete = capstan::read<bool>(in);
      const auto at = capstan::read<std::uint64_t>(in);
      if (!complete_ || complete_->start != start) {
        this->input_->load(start);
        complete_ = nullptr;
        begin_filling();
        while (filling_->calls < calls && !(was_complete && filling_->values.size() >= at)) fill_one();
        if (filling_->values.size() < at) {
          throw Error(Code::invalid_argument, "position of other data: found " +
                                                  std::to_string(filling_->values.size()) +
                                                  " elements, expected at least " + std::to_string(at));
        }
      }
      at_ = at;
    }
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<const Elements> complete_;
    std::shared_ptr<Elements> filling_;
    std::uint64_t at_ = 0;
  };

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace capstan::data
