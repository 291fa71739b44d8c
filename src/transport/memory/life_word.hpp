// life_word.hpp -- a word in shared memory that tells whether the thread that holds it still lives.
//
// Loads from a dead process's mapped memory succeed for ever, and its endpoint's failure is known only
// milliseconds later. The kernel knows at once: when a thread ends, by SIGKILL too, it marks every robust
// mutex that the thread holds, before the thread's memory goes (`man set_robust_list`). So whoever reads the
// word after its data, and finds it alive, has read data of a living process, at the price of one load.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace capstan::transport {

class LifeWord {
 public:
  static constexpr std::size_t kBytes = 64;
  static_assert(sizeof(pthread_mutex_t) <= kBytes);

  /// Makes the word at `at`, in zeroed shared memory, aligned to 8 bytes. It stands for the calling thread,
  /// which must be the one that destroys it.
  explicit LifeWord(std::byte* at);
  ~LifeWord();
  LifeWord(const LifeWord&) = delete;
  LifeWord& operator=(const LifeWord&) = delete;

  /// The word at `at`, as any process that maps it sees it: true from the constructor until the destructor or
  /// the thread's death. Loads before the call are done before it.
  static bool alive(const std::byte* at) noexcept;

 private:
  pthread_mutex_t* mutex_;
};

}  // namespace capstan::transport
