// elements.hpp -- element-wise operators: map, filter, batch, take, skip, shard.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "capstan/data/operator.hpp"

namespace capstan {

/// Placeholder for both arguments of Dataset::shard, which AutoShardPolicy::hint replaces by actual numbers.
inline constexpr std::int64_t kShardHint = -1;

}  // namespace capstan

namespace capstan::data {

template <class In, class Out>
class MapNode : public OneInput<MapNode<In, Out>, In, Out> {
 public:
  MapNode(NodePointer<In> input, std::function<Out(In)> function)
      : OneInput<MapNode, In, Out>(std::move(input)), function_(std::move(function)) {}
  Kind kind() const noexcept override { return Kind::map; }
  std::unique_ptr<Cursor<Out>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), function_);
  }

 private:
  class Reading final : public OneInputCursor<In, Out> {
   public:
    Reading(std::unique_ptr<Cursor<In>> input, std::function<Out(In)> function)
        : OneInputCursor<In, Out>(std::move(input)), function_(std::move(function)) {}
    std::optional<Out> next() override {
      if (auto value = this->input_->next()) return function_(std::move(*value));
      return std::nullopt;
    }

   private:
    Kind kind() const noexcept override { return Kind::map; }
    std::function<Out(In)> function_;
  };

  std::function<Out(In)> function_;
};

template <class T>
class FilterNode : public PassThrough<FilterNode<T>, T> {
 public:
  FilterNode(NodePointer<T> input, std::function<bool(const T&)> keep)
      : PassThrough<FilterNode, T>(std::move(input)), keep_(std::move(keep)) {}
  Kind kind() const noexcept override { return Kind::filter; }
  std::unique_ptr<Cursor<T>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), keep_);
  }

 private:
  class Reading final : public OneInputCursor<T, T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::function<bool(const T&)> keep)
        : OneInputCursor<T, T>(std::move(input)), keep_(std::move(keep)) {}
    std::optional<T> next() override {
      while (auto value = this->input_->next()) {
        if (keep_(*value)) return value;
      }
      return std::nullopt;
    }

   private:
    Kind kind() const noexcept override { return Kind::filter; }
    std::function<bool(const T&)> keep_;
  };

  std::function<bool(const T&)> keep_;
};

/// Combines `size` elements into one.
template <class In, class Out>
class BatchNode : public OneInput<BatchNode<In, Out>, In, Out> {
 public:
  using Combine = std::function<Out(std::vector<In>)>;
  BatchNode(NodePointer<In> input, std::int64_t size, bool drop_remainder, Combine combine)
      : OneInput<BatchNode, In, Out>(std::move(input)),
        size_(size),
        drop_remainder_(drop_remainder),
        combine_(std::move(combine)) {
    require_at_least(size, 1, "batch: the size");
  }
  Kind kind() const noexcept override { return Kind::batch; }
  BatchInfo batches() const override { return {size_, drop_remainder_}; }
  std::unique_ptr<Cursor<Out>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), *this);
  }

 private:
  class Reading final : public OneInputCursor<In, Out> {
   public:
    Reading(std::unique_ptr<Cursor<In>> input, const BatchNode& node)
        : OneInputCursor<In, Out>(std::move(input)),
          size_(static_cast<std::size_t>(node.size_)),
          drop_remainder_(node.drop_remainder_),
          combine_(node.combine_) {}
    std::optional<Out> next() override {
      std::vector<In> elements;
      elements.reserve(std::min(size_, kMaxReserved));
      while (elements.size() < size_) {
        auto value = this->input_->next();
        if (!value) break;
        elements.push_back(std::move(*value));
      }
      if (elements.empty() || (drop_remainder_ && elements.size() < size_)) return std::nullopt;
      if constexpr (std::is_same_v<Out, std::vector<In>>) {
        return elements;
      } else {
        return combine_(std::move(elements));
      }
    }

   private:
    static constexpr std::size_t kMaxReserved = 65536;  // the batch size may be far larger than the dataset
    Kind kind() const noexcept override { return Kind::batch; }
    std::size_t size_;
    bool drop_remainder_;
    Combine combine_;
  };

  std::int64_t size_;
  bool drop_remainder_;
  Combine combine_;
};

/// take and skip: the first `count` elements, or all others; -1 denotes all elements.
template <class T>
class CountedNode : public PassThrough<CountedNode<T>, T> {
 public:
  CountedNode(NodePointer<T> input, Kind kind, std::int64_t count)
      : PassThrough<CountedNode, T>(std::move(input)), kind_(kind), count_(count) {
    require_at_least(count, -1, kind == Kind::take ? "take: the count" : "skip: the count");
  }
  Kind kind() const noexcept override { return kind_; }
  bool endless() const override { return (kind_ == Kind::skip || count_ < 0) && this->input_->endless(); }
  std::unique_ptr<Cursor<T>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), kind_, count_);
  }

 private:
  class Reading final : public OneInputCursor<T, T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, Kind kind, std::int64_t count)
        : OneInputCursor<T, T>(std::move(input)),
          kind_(kind),
          count_(count < 0 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(count)) {}
    std::optional<T> next() override {
      if (kind_ == Kind::take) {
        if (passed_ >= count_) return std::nullopt;
        auto value = this->input_->next();
        if (value) ++passed_;
        return value;
      }
      while (passed_ < count_) {
        if (!this->input_->next()) return std::nullopt;
        ++passed_;
      }
      return this->input_->next();
    }
    void rewind() override {
      this->input_->rewind();
      passed_ = 0;
    }

   private:
    Kind kind() const noexcept override { return kind_; }
    void write_state(Writer& out) const override {
      capstan::write(out, passed_);
      this->input_->save(out);
    }
    void read_state(Reader& in) override {
      passed_ = capstan::read<std::uint64_t>(in);
      this->input_->load(in);
    }
    Kind kind_;
    std::uint64_t count_, passed_ = 0;
  };

  Kind kind_;
  std::int64_t count_;
};

template <class T>
class ShardNode : public PassThrough<ShardNode<T>, T> {
 public:
  ShardNode(NodePointer<T> input, std::int64_t count, std::int64_t index, bool each_has_one)
      : PassThrough<ShardNode, T>(std::move(input)),
        count_(count),
        index_(index),
        each_has_one_(each_has_one) {
    if (count == kShardHint && index == kShardHint) return;
    require_at_least(count, 1, "shard: the number of shards");
    if (index < 0 || index >= count) {
      throw Error(Code::invalid_argument, "shard: the index is " + std::to_string(index) +
                                              ", expected 0 to " + std::to_string(count - 1));
    }
  }
  Kind kind() const noexcept override { return Kind::shard; }
  OperatorPointer with_shard(std::int64_t count, std::int64_t index) const override {
    if (count_ != kShardHint) return nullptr;
    return std::make_shared<ShardNode>(this->input_, count, index, false);
  }
  std::unique_ptr<Cursor<T>> open() const override {
    if (count_ == kShardHint) {
      throw Error(Code::failed_precondition,
                  "shard(kShardHint, kShardHint): the numbers are not set; use AutoShardPolicy::hint");
    }
    return std::make_unique<Reading>(this->input_->open(), *this);
  }

 private:
  class Reading final : public OneInputCursor<T, T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, const ShardNode& node)
        : OneInputCursor<T, T>(std::move(input)),
          count_(static_cast<std::uint64_t>(node.count_)),
          index_(static_cast<std::uint64_t>(node.index_)),
          each_has_one_(node.each_has_one_) {}
    std::optional<T> next() override {
      std::optional<T> value;
      do {
        value = this->input_->next();
        if (!value) return std::nullopt;
      } while (seen_++ % count_ != index_);
      while (each_has_one_ && seen_ < count_) {
        if (!this->input_->next()) {
          throw Error(Code::invalid_argument, "shard: found " + std::to_string(seen_) +
                                                  " elements, expected at least one for each of " +
                                                  std::to_string(count_) +
                                                  " shards; use fewer workers, or AutoShardPolicy::off");
        }
        ++seen_;
      }
      return value;
    }
    void rewind() override {
      this->input_->rewind();
      seen_ = 0;
    }

   private:
    Kind kind() const noexcept override { return Kind::shard; }
    void write_state(Writer& out) const override {
      capstan::write(out, seen_);
      this->input_->save(out);
    }
    void read_state(Reader& in) override {
      seen_ = capstan::read<std::uint64_t>(in);
      this->input_->load(in);
    }
    std::uint64_t count_, index_, seen_ = 0;
    bool each_has_one_;
  };

  std::int64_t count_, index_;
  bool each_has_one_;
};

template <class T>
OperatorPointer Node<T>::sharded(std::int64_t count, std::int64_t index, bool each_has_one) const {
  return std::make_shared<ShardNode<T>>(node_as<T>(this->shared_from_this()), count, index, each_has_one);
}

}  // namespace capstan::data
