// liveness_word.hpp -- a word in shared memory that shows whether its thread is alive.
//
// Loads from mapped memory of a dead process still succeed, and its endpoint fails only milliseconds later.
// The kernel knows at once: when a thread ends, also by SIGKILL, the kernel marks every robust mutex that the
// thread holds before it releases the thread's memory (set_robust_list(2)). A reader that loads data first
// and then finds the word alive has read data of a live process, at the cost of one load.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace capstan::transport {

class LivenessWord {
 public:
  static constexpr std::size_t kBytes = 64;
  static_assert(sizeof(pthread_mutex_t) <= kBytes);

  /// Creates the word at `at`, in zeroed shared memory, aligned to 8 bytes. It represents the calling thread,
  /// which must also destroy it.
  explicit LivenessWord(std::byte* at);
  ~LivenessWord();
  LivenessWord(const LivenessWord&) = delete;
  LivenessWord& operator=(const LivenessWord&) = delete;

  /// Returns true from the constructor until the destructor or the death of the thread. Any process that maps
  /// the word may call it. Loads before the call are ordered before it (acquire).
  static bool alive(const std::byte* at) noexcept;

 private:
  pthread_mutex_t* mutex_;
};

}  // namespace capstan::transport
