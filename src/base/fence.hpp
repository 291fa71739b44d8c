// fence.hpp -- memory fences that also compile under ThreadSanitizer.
#pragma once

#include <atomic>

namespace capstan {

/// std::atomic_thread_fence. ThreadSanitizer does not model fences, and GCC rejects them in its builds.
/// Without the fence, ThreadSanitizer reports no false races as long as both sides publish data through
/// atomics.
inline void thread_fence(std::memory_order order) noexcept {
#ifdef __SANITIZE_THREAD__
  (void)order;
  __sync_synchronize();
#else
  std::atomic_thread_fence(order);
#endif
}

/// Keeps the compiler from reordering stores across it. This suffices for memory that outlives a killed
/// process, because SIGKILL preserves the program order of a processor's stores.
inline void signal_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace capstan
