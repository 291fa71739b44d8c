// interleave.hpp -- operators that apply a function to a stream: interleave and transform.
#pragma once

#include <functional>
#include <utility>

#include "capstan/data/operator.hpp"
#include "capstan/data/sources.hpp"

namespace capstan::data {

/// Makes a pipeline from each of `cycle` elements and takes `block` elements from each in turn. If a pipeline
/// has ended, its next turn goes to the pipeline of the next element, as in TensorFlow.
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
    /// The cursor of one element; `before` is the input's position before that element.
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
        throw Error(Code::invalid_argument, "position of another interleave: found a cycle of " +
                                                std::to_string(slots) + ", expected " +
                                                std::to_string(slots_.size()));
      }
      for (Slot& slot : slots_) {
        if (!capstan::read<bool>(in)) continue;
        this->input_->load(capstan::read<std::vector<std::byte>>(in));
        fill(slot);
        if (!slot.cursor) {
          throw Error(Code::invalid_argument, "position of other data: the data end before the position");
        }
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

/// A function from stream to stream. A position is the input's position at the start and the number of calls.
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
