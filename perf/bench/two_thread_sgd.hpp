// two_thread_sgd.hpp -- the work of a push without a protocol: the bound of pushes between two cores.
#pragma once

#include <hwy/aligned_allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "client/channel/store_choice.hpp"

namespace capstan::perf {

/// Updates a table by SGD with a rate of 1. The calling thread copies ids and gradients to a ring, as a
/// worker does; a second thread applies them by scatter_sgd(), as a ps does. The size of the ring and of its
/// entries are those of a push ring. It chooses its stores by a client::StoreChoice of its own.
class TwoThreadSgd {
 public:
  /// `ahead`: prefetch distance in rows. The table must outlive this object.
  TwoThreadSgd(std::span<float> table, std::uint64_t width, int ahead);
  TwoThreadSgd(const TwoThreadSgd&) = delete;
  TwoThreadSgd& operator=(const TwoThreadSgd&) = delete;
  ~TwoThreadSgd();

  /// row ids[i] of the table -= row i of `gradient`. Returns once all entries are in the ring.
  void push(std::span<const std::int64_t> ids, const float* gradient);
  /// Waits until all entries have been applied.
  void flush() const;

 private:
  static constexpr std::size_t kLine = 64;

  struct Entry {
    std::vector<std::int64_t> ids;
    hwy::AlignedFreeUniquePtr<float[]> gradient;
    std::size_t rows = 0;
  };

  void apply_entries();

  std::span<float> table_;
  std::uint64_t width_;
  int ahead_;
  std::size_t rows_an_entry_;
  std::vector<Entry> ring_;
  client::StoreChoice stores_;
  alignas(kLine) std::atomic<std::uint64_t> written_{0};
  alignas(kLine) std::atomic<std::uint64_t> applied_{0};
  std::thread applies_;
};

}  // namespace capstan::perf
