// background.hpp -- operators that produce elements ahead of time in background threads: prefetch, parallel
// map.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "capstan/cancellation.hpp"
#include "capstan/data/operator.hpp"

namespace capstan::data {

struct Ahead {
  int threads = 1;
  std::size_t elements = 1;  // maximum number in progress or ready
};

/// Threads take elements from the input, one at a time, and apply `function` to them concurrently; results
/// and errors keep the input's order. Threads start at the first call of next(). The destructor waits until
/// each thread has completed its current call of the input or of `function`. next() throws Error(cancelled)
/// if the function that calls it is cancelled while it waits for an element.
///
/// A position holds the input's position before one of the last kPositionInterval elements returned and the
/// number of elements to skip from there: elements that are ready but not returned are produced again.
template <class In, class Out>
class BackgroundCursor final : public OneInputCursor<In, Out> {
 public:
  BackgroundCursor(std::unique_ptr<Cursor<In>> input, std::function<Out(In)> function, Kind kind, Ahead ahead)
      : OneInputCursor<In, Out>(std::move(input)),
        function_(std::move(function)),
        kind_(kind),
        ahead_(ahead) {
    begin();
  }
  ~BackgroundCursor() override { stop(); }

  std::optional<Out> next() override {
    std::unique_lock lock(mutex_);
    if (threads_.empty() && !ended_) start();
    if (!ready()) {
      lock.unlock();
      await_ready();
      lock.lock();
    }
    if (results_.empty()) return std::nullopt;
    Result result = std::move(results_.front());
    results_.pop_front();
    not_full_.notify_one();
    lock.unlock();
    if (!result.before.empty()) {
      base_ = std::move(result.before);
      since_ = 0;
    }
    ++since_;
    if (result.error) std::rethrow_exception(result.error);
    return std::move(result.value);
  }

  void rewind() override {
    stop();
    this->input_->rewind();
    begin();
  }

 private:
  struct Result {
    std::optional<Out> value;
    std::exception_ptr error;
    std::vector<std::byte> before;  // the input's position before it; only every kPositionInterval-th
    bool done = false;
  };
  static constexpr std::uint64_t kPositionInterval = 32;  // saving a position costs about 100 ns

  Kind kind() const noexcept override { return kind_; }

  /// REQUIRES: mutex_ is held.
  bool ready() const { return !results_.empty() ? results_.front().done : ended_; }
  void await_ready() {
    const CancellationCallback notify([this] {
      const std::lock_guard lock(mutex_);
      ready_.notify_all();
    });
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return ready() || cancelled(); });
    if (!ready()) throw_if_cancelled();
  }
  void begin() {
    base_ = this->input_->saved();
    since_ = 0;
    taken_ = 0;
    ended_ = false;
  }
  void start() {
    stopping_ = false;
    for (int i = 0; i < ahead_.threads; ++i) threads_.emplace_back([this] { work(); });
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    not_full_.notify_all();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    results_.clear();
  }

  void work() {
    while (true) {
      std::optional<In> element;
      std::exception_ptr error;
      Result* result = nullptr;  // stays valid: a deque does not move its elements
      {
        const std::lock_guard turn(input_mutex_);  // keeps elements and results in order
        std::unique_lock lock(mutex_);
        not_full_.wait(lock, [this] { return stopping_ || ended_ || results_.size() < ahead_.elements; });
        if (stopping_ || ended_) return;
        lock.unlock();
        std::vector<std::byte> before;
        try {
          if (taken_++ % kPositionInterval == 0) before = this->input_->saved();
          element = this->input_->next();
        } catch (...) {
          error = std::current_exception();
        }
        lock.lock();
        if (!element && !error) {
          ended_ = true;
          ready_.notify_all();
          not_full_.notify_all();
          return;
        }
        result = &results_.emplace_back();
        result->before = std::move(before);
      }
      std::optional<Out> value;
      if (element) {
        try {
          value.emplace(function_(std::move(*element)));
        } catch (...) {
          error = std::current_exception();
        }
      }
      const std::lock_guard lock(mutex_);
      result->value = std::move(value);
      result->error = std::move(error);
      result->done = true;
      ready_.notify_all();
    }
  }

  void write_state(Writer& out) const override {
    capstan::write(out, base_);
    capstan::write(out, since_);
  }
  void read_state(Reader& in) override {
    stop();
    this->input_->load(capstan::read<std::vector<std::byte>>(in));
    begin();
    since_ = capstan::read<std::uint64_t>(in);
    this->input_->pass(since_);
    taken_ = 1;  // the restored base_ and since_ stay valid until the next saved position
  }

  std::function<Out(In)> function_;
  Kind kind_;
  Ahead ahead_;
  std::vector<std::byte> base_;
  std::uint64_t since_ = 0;

  std::mutex input_mutex_;  // protects the input and taken_
  std::uint64_t taken_ = 0;
  mutable std::mutex mutex_;  // protects all members below
  std::condition_variable ready_, not_full_;
  std::deque<Result> results_;
  bool ended_ = false;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

template <class T>
class PrefetchNode : public PassThrough<PrefetchNode<T>, T> {
 public:
  PrefetchNode(NodePointer<T> input, std::int64_t elements)
      : PassThrough<PrefetchNode, T>(std::move(input)), elements_(static_cast<std::size_t>(elements)) {
    require_at_least(elements, 1, "prefetch: the number of elements");
  }
  Kind kind() const noexcept override { return Kind::prefetch; }
  std::unique_ptr<Cursor<T>> open() const override {
    return std::make_unique<BackgroundCursor<T, T>>(
        this->input_->open(), [](T value) { return value; }, Kind::prefetch, Ahead{1, elements_});
  }

 private:
  std::size_t elements_;
};

template <class In, class Out>
class ParallelMapNode : public OneInput<ParallelMapNode<In, Out>, In, Out> {
 public:
  ParallelMapNode(NodePointer<In> input, std::function<Out(In)> function, Ahead ahead)
      : OneInput<ParallelMapNode, In, Out>(std::move(input)), function_(std::move(function)), ahead_(ahead) {}
  Kind kind() const noexcept override { return Kind::map; }
  std::unique_ptr<Cursor<Out>> open() const override {
    return std::make_unique<BackgroundCursor<In, Out>>(this->input_->open(), function_, Kind::map, ahead_);
  }

 private:
  std::function<Out(In)> function_;
  Ahead ahead_;
};

}  // namespace capstan::data
