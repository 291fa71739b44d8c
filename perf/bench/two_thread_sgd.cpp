// two_thread_sgd.cpp -- a ring with one writer and one reader.
#include "perf/bench/two_thread_sgd.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/backoff.hpp"
#include "perf/bench/row_loops.hpp"
#include "protocol/row_copy.hpp"
#include "transport/fabric.hpp"

namespace capstan::perf {
namespace {

constexpr std::size_t kRingBytes = 1 << 20;  // default of push-ring-bytes
constexpr std::uint64_t kStop = ~std::uint64_t{0};

/// Polls until `done()`, and calls `sleep()` whenever that takes long.
template <class Done, class Sleep>
void wait_until(const Done& done, const Sleep& sleep) {
  using std::chrono::microseconds;
  Backoff backoff(microseconds(50), microseconds(5));
  while (!done()) {
    if (!backoff.pause()) sleep();
  }
}

}  // namespace

TwoThreadSgd::TwoThreadSgd(std::span<float> table, std::uint64_t width, int ahead)
    : table_(table),
      width_(width),
      ahead_(ahead),
      rows_an_entry_(
          std::max<std::size_t>(1, transport::kPieceBytes / (width * sizeof(float) + sizeof(std::int64_t)))) {
  const std::size_t entry_bytes = rows_an_entry_ * (width * sizeof(float) + sizeof(std::int64_t));
  ring_.resize(std::max<std::size_t>(4, kRingBytes / entry_bytes));
  for (Entry& entry : ring_) {
    entry.ids.resize(rows_an_entry_);
    entry.gradient = hwy::AllocateAligned<float>(rows_an_entry_ * width);
  }
  applies_ = std::thread([this] { apply_entries(); });
}

TwoThreadSgd::~TwoThreadSgd() {
  flush();
  written_.store(kStop, std::memory_order_release);
  written_.notify_one();
  applies_.join();
}

void TwoThreadSgd::push(std::span<const std::int64_t> ids, const float* gradient) {
  std::uint64_t number = written_.load(std::memory_order_relaxed);
  for (std::size_t first = 0; first < ids.size(); first += rows_an_entry_, ++number) {
    const auto free = [&] { return number - applied_.load(std::memory_order_acquire) < ring_.size(); };
    wait_until(free, [] { std::this_thread::yield(); });
    Entry& entry = ring_[number % ring_.size()];
    entry.rows = std::min(rows_an_entry_, ids.size() - first);
    std::memcpy(entry.ids.data(), &ids[first], entry.rows * sizeof ids[0]);
    const auto* const from = reinterpret_cast<const std::byte*>(gradient + first * width_);
    auto* const to = reinterpret_cast<std::byte*>(entry.gradient.get());
    const std::size_t bytes = entry.rows * width_ * sizeof(float);
    stores_.write(bytes, [&](bool streaming) {
      if (streaming) return protocol::stream_rows(from, bytes, {}, 1, to);
      std::memcpy(to, from, bytes);
    });
    written_.store(number + 1, std::memory_order_release);
    written_.notify_one();
  }
}

void TwoThreadSgd::flush() const {
  const auto applied = [&] {
    return applied_.load(std::memory_order_acquire) == written_.load(std::memory_order_relaxed);
  };
  wait_until(applied, [] { std::this_thread::yield(); });
}

void TwoThreadSgd::apply_entries() {
  for (std::uint64_t number = 0;; ++number) {
    const auto written = [&] { return written_.load(std::memory_order_acquire) != number; };
    // Sleeps between samples, in which a ps needs this core.
    wait_until(written, [&] { written_.wait(number, std::memory_order_acquire); });
    if (written_.load(std::memory_order_acquire) == kStop) return;
    const Entry& entry = ring_[number % ring_.size()];
    scatter_sgd(table_.data(), std::span(entry.ids).first(entry.rows), width_, ahead_, 1,
                entry.gradient.get());
    applied_.store(number + 1, std::memory_order_release);
  }
}

}  // namespace capstan::perf
