// save_times.hpp -- how many checkpoints were saved, and what they took.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace capstan::checkpoint {

struct SaveMetrics {
  std::uint64_t saves = 0;     // that are whole and in their directory
  double waited_seconds = 0;   // for which the program stood still
  double written_seconds = 0;  // from their beginning until they were published
  double last_seconds = 0;     // of the last one, likewise
};

/// Any thread.
class SaveTimes {
 public:
  using Seconds = std::chrono::duration<double>;

  void add_wait(Seconds time) {
    const std::lock_guard lock(mutex_);
    figures_.waited_seconds += time.count();
  }
  void add_saved(Seconds time) {
    const std::lock_guard lock(mutex_);
    ++figures_.saves;
    figures_.written_seconds += time.count();
    figures_.last_seconds = time.count();
  }
  SaveMetrics figures() const {
    const std::lock_guard lock(mutex_);
    return figures_;
  }

 private:
  mutable std::mutex mutex_;
  SaveMetrics figures_;
};

}  // namespace capstan::checkpoint
