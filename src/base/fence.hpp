// fence.hpp -- a memory fence that builds with ThreadSanitizer, too.
#pragma once

#include <atomic>

namespace capstan {

/// std::atomic_thread_fence. ThreadSanitizer does not model fences, and GCC refuses them there; it needs none
/// either, as long as what lies on both sides of the fence is published through atomics.
inline void thread_fence(std::memory_order order) noexcept {
#ifdef __SANITIZE_THREAD__
  (void)order;
  __sync_synchronize();
#else
  std::atomic_thread_fence(order);
#endif
}

/// Keeps the compiler from moving stores across it. Enough where a process is killed and its memory outlives
/// it, since a kill leaves the stores of a processor in program order.
inline void signal_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace capstan
