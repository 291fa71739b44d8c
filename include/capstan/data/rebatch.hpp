// rebatch.hpp -- operators that cut batches anew.
#pragma once

#include <algorithm>
#include <utility>

#include "capstan/data/batch_of.hpp"
#include "capstan/data/operator.hpp"

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
    /// The last batch stays where it is at the end, and is gone behind an error: a position before it would
    /// meet the error again.
    bool pull() {
      auto before = this->input_->saved();
      std::optional<T> batch;
      try {
        batch = this->input_->next();
      } catch (...) {
        batch_.reset();
        size_ = at_ = 0;
        throw;
      }
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

}  // namespace capstan::data
