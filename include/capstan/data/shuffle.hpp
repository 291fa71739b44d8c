// shuffle.hpp -- random order of elements by means of a bounded buffer.
#pragma once

#include <atomic>
#include <random>
#include <utility>

#include "capstan/data/operator.hpp"

namespace capstan::data {

/// A hash for random numbers that depend only on a key and a counter, equal on every machine (SplitMix64).
inline std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
/// Returns a number in [0, bound). The bias of the 64-bit multiplication is below 2^-32 for any buffer that
/// fits in memory.
inline std::uint64_t random_below(std::uint64_t bound, std::uint64_t key, std::uint64_t counter) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(mixed(key ^ mixed(counter))) * bound) >> 64);
}

struct ShuffleOrder {
  std::uint64_t seed = 0;
  bool has_seed = false;
  bool reshuffle = true;
};

/// Returns an element drawn from the buffer and replaces it by the next element of the input. A position
/// holds, instead of the buffer, the input's position at the start of the iteration and the number of
/// elements returned since.
template <class T>
class ShuffleNode : public PassThrough<ShuffleNode<T>, T> {
 public:
  ShuffleNode(NodePointer<T> input, std::int64_t buffer, ShuffleOrder order)
      : PassThrough<ShuffleNode, T>(std::move(input)), buffer_(buffer), order_(order) {
    require_at_least(buffer, 1, "shuffle: the buffer size");
    if (!order_.has_seed && !order_.reshuffle) {  // random, but equal for all iterations
      order_.seed = random_seed();
      order_.has_seed = true;
    }
  }
  Kind kind() const noexcept override { return Kind::shuffle; }
  std::unique_ptr<Cursor<T>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), static_cast<std::size_t>(buffer_),
                                     order_.has_seed ? order_.seed : random_seed(),
                                     order_.reshuffle ? iterators_->fetch_add(1) : 0, order_.reshuffle);
  }

 private:
  static std::uint64_t random_seed() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }

  class Reading final : public OneInputCursor<T, T> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::size_t size, std::uint64_t seed, std::uint64_t iterator,
            bool reshuffle)
        : OneInputCursor<T, T>(std::move(input)),
          size_(size),
          seed_(seed),
          iterator_(iterator),
          reshuffle_(reshuffle) {
      begin_iteration();
    }
    std::optional<T> next() override {
      ++calls_;
      while (!ended_ && buffer_.size() < size_) {
        auto value = this->input_->next();
        if (value) {
          buffer_.push_back(std::move(*value));
        } else {
          ended_ = true;
        }
      }
      if (buffer_.empty()) {
        --calls_;  // calls after the end do not count
        return std::nullopt;
      }
      const auto chosen = random_below(buffer_.size(), key_, given_++);
      std::optional<T> value(std::move(buffer_[chosen]));
      if (chosen + 1 != buffer_.size()) buffer_[chosen] = std::move(buffer_.back());
      buffer_.pop_back();
      return value;
    }
    void rewind() override {
      this->input_->rewind();
      if (reshuffle_) ++iteration_;
      begin_iteration();
    }

   private:
    Kind kind() const noexcept override { return Kind::shuffle; }
    void begin_iteration() {
      start_ = this->input_->saved();
      key_ = mixed(mixed(mixed(seed_) ^ iterator_) ^ iteration_);
      buffer_.clear();
      calls_ = given_ = 0;
      ended_ = false;
    }
    void write_state(Writer& out) const override {
      capstan::write(out, seed_);
      capstan::write(out, iterator_);
      capstan::write(out, iteration_);
      capstan::write(out, calls_);
      capstan::write(out, start_);
    }
    void read_state(Reader& in) override {
      seed_ = capstan::read<std::uint64_t>(in);
      iterator_ = capstan::read<std::uint64_t>(in);
      iteration_ = capstan::read<std::uint64_t>(in);
      const auto calls = capstan::read<std::uint64_t>(in);
      this->input_->load(capstan::read<std::vector<std::byte>>(in));
      begin_iteration();
      this->pass(calls);
    }
    std::size_t size_;
    std::uint64_t seed_, iterator_, iteration_ = 0;
    bool reshuffle_;
    std::uint64_t key_ = 0, calls_ = 0, given_ = 0;
    std::vector<std::byte> start_;
    std::vector<T> buffer_;
    bool ended_ = false;
  };

  std::int64_t buffer_;
  ShuffleOrder order_;
  // Number of iterators made: with reshuffling, each has its own order.
  std::shared_ptr<std::atomic<std::uint64_t>> iterators_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace capstan::data
