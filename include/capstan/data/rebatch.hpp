// rebatch.hpp -- operators that change the sizes of batches.
#pragma once

#include <algorithm>
#include <utility>

#include "capstan/data/batch_of.hpp"
#include "capstan/data/operator.hpp"

namespace capstan::data {

/// Holds a batch of the input while pieces of it are returned. A position is the input's position before that
/// batch.
template <Batch T>
class CuttingCursor : public OneInputCursor<T, T> {
 protected:
  using OneInputCursor<T, T>::OneInputCursor;
  /// Replaces the current batch by the next one. At the end, keeps the current batch. On an error, discards
  /// it: a position saved before that batch would repeat the error when it is restored.
  bool pull() {
    auto before = this->input_->saved();
    std::optional<T> batch;
    try {
      batch = this->input_->next();
    } catch (...) {
      batch_.reset();
      throw;
    }
    if (!batch) return false;
    before_ = std::move(before);
    batch_ = std::move(batch);
    return true;
  }
  std::int64_t size() const { return batch_ ? BatchOf<T>::size(*batch_) : 0; }
  void write_state(Writer& out) const override {
    capstan::write(out, batch_.has_value());
    if (batch_) {
      capstan::write(out, before_);
    } else {
      this->input_->save(out);
    }
  }
  void read_state(Reader& in) override {
    batch_.reset();
    if (!capstan::read<bool>(in)) return this->input_->load(in);
    this->input_->load(capstan::read<std::vector<std::byte>>(in));
    if (!pull()) throw ended_early();
  }
  static Error ended_early() {
    return Error(Code::invalid_argument, "position of other data: the data end before the position");
  }

  std::optional<T> batch_;

 private:
  std::vector<std::byte> before_;
};

/// Batches of the given sizes, used cyclically, whatever the sizes of the input's batches. A size of 0 yields
/// an empty batch. The last batch may be smaller.
template <Batch T>
class RebatchNode : public OneInput<RebatchNode<T>, T, T> {
 public:
  RebatchNode(NodePointer<T> input, std::vector<std::int64_t> sizes, bool drop_remainder)
      : OneInput<RebatchNode, T, T>(std::move(input)),
        sizes_(std::move(sizes)),
        drop_remainder_(drop_remainder) {
    if (sizes_.empty()) throw Error(Code::invalid_argument, "rebatch: found no sizes, expected at least one");
    for (const std::int64_t size : sizes_) require_at_least(size, 0, "rebatch: a size");
    if (*std::max_element(sizes_.begin(), sizes_.end()) == 0) {
      throw Error(Code::invalid_argument, "rebatch: all sizes are 0, expected at least one above 0");
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
  class Reading final : public CuttingCursor<T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::vector<std::int64_t> sizes, bool drop_remainder)
        : CuttingCursor<T>(std::move(input)), sizes_(std::move(sizes)), drop_remainder_(drop_remainder) {}
    std::optional<T> next() override {
      const std::int64_t target = sizes_[turn_];
      std::optional<T> out;
      // Empty batches are returned without checking whether more data follow, as in TensorFlow.
      if (target == 0 && (this->batch_ || pull())) out = BatchOf<T>::slice(*this->batch_, 0, 0);
      for (std::int64_t filled = 0; filled < target;) {
        if (at_ == size_ && !pull()) {
          if (drop_remainder_) return std::nullopt;
          break;
        }
        const std::int64_t end = std::min(at_ + target - filled, size_);
        T part = BatchOf<T>::slice(*this->batch_, at_, end);
        filled += end - at_;
        at_ = end;
        if (out) {
          BatchOf<T>::append(*out, std::move(part));
        } else {
          out = std::move(part);
        }
      }
      if (out && target > 0 && BatchOf<T>::size(*out) == 0) return std::nullopt;
      if (out) turn_ = (turn_ + 1) % sizes_.size();
      return out;
    }
    void rewind() override {
      this->input_->rewind();
      this->batch_.reset();
      size_ = at_ = 0;
      turn_ = 0;
    }

   private:
    Kind kind() const noexcept override { return Kind::rebatch; }
    bool pull() {
      try {
        if (!CuttingCursor<T>::pull()) return false;
      } catch (...) {
        size_ = at_ = 0;
        throw;
      }
      size_ = this->size();
      at_ = 0;
      return true;
    }
    void write_state(Writer& out) const override {
      capstan::write(out, turn_);
      capstan::write(out, at_);
      CuttingCursor<T>::write_state(out);
    }
    void read_state(Reader& in) override {
      turn_ = capstan::read<std::uint64_t>(in) % sizes_.size();
      at_ = capstan::read<std::int64_t>(in);
      CuttingCursor<T>::read_state(in);
      size_ = this->size();
      if (at_ < 0 || at_ > size_) throw this->ended_early();
    }
    std::vector<std::int64_t> sizes_;
    bool drop_remainder_;
    std::uint64_t turn_ = 0;
    std::int64_t size_ = 0, at_ = 0;  // size of batch_, number of its examples returned so far
  };

  std::vector<std::int64_t> sizes_;
  bool drop_remainder_;
};

/// Cuts each batch into `pieces` parts of equal size. The size is rounded up, so the last parts may be
/// smaller or empty.
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
  class Reading final : public CuttingCursor<T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::int64_t pieces)
        : CuttingCursor<T>(std::move(input)), pieces_(pieces) {}
    std::optional<T> next() override {
      if (given_ == pieces_) drop();
      if (!this->batch_ && !this->pull()) return std::nullopt;
      const std::int64_t size = this->size();
      const std::int64_t piece = (size + pieces_ - 1) / pieces_;
      const std::int64_t from = std::min(piece * given_++, size);
      return BatchOf<T>::slice(*this->batch_, from, std::min(from + piece, size));
    }
    void rewind() override {
      this->input_->rewind();
      drop();
    }

   private:
    Kind kind() const noexcept override { return Kind::legacy_rebatch; }
    void drop() {
      this->batch_.reset();
      given_ = 0;
    }
    void write_state(Writer& out) const override {
      capstan::write(out, given_);
      CuttingCursor<T>::write_state(out);
    }
    void read_state(Reader& in) override {
      given_ = capstan::read<std::int64_t>(in);
      if (given_ < 0 || given_ > pieces_) throw this->ended_early();
      CuttingCursor<T>::read_state(in);
    }
    std::int64_t pieces_, given_ = 0;  // parts per batch, parts of batch_ returned so far
  };

  std::int64_t pieces_;
};

template <Batch T>
OperatorPointer RebatchNode<T>::with_pieces(std::int64_t pieces) const {
  return std::make_shared<LegacyRebatchNode<T>>(this->input_, pieces);
}

}  // namespace capstan::data
