// shard_writing.hpp -- how a ps shows readers of mapped memory that a shard is changing.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fence.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

class Store::Writing {
 public:
  explicit Writing(Shard& shard) : shard_(shard), version_(*shard.version) {
    if (shard_.unfinished != 0) return;
    // It is odd already where a process died while it wrote.
    version_.store(version_.load(std::memory_order_relaxed) | 1, std::memory_order_relaxed);
    thread_fence(std::memory_order_release);  // odd before any element changes
  }
  ~Writing() {
    if (shard_.unfinished == 0)
      version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  Shard& shard_;
  std::atomic_ref<std::uint64_t> version_;
};

}  // namespace capstan::ps
