// save_times.hpp -- number and duration of saves.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace capstan::strategy {

struct SaveMetrics {
  std::uint64_t saves = 0;     // published checkpoints
  double waited_seconds = 0;   // during which the program waited for saves
  double written_seconds = 0;  // from the beginning of each save until its checkpoint was published
  double last_seconds = 0;     // likewise, of the last one
};

/// Any thread.
class SaveTimes {
 public:
  using Seconds = std::chrono::duration<double>;

  void add_wait(Seconds time) {
    const std::lock_guard lock(mutex_);
    metrics_.waited_seconds += time.count();
  }
  void add_saved(Seconds time) {
    const std::lock_guard lock(mutex_);
    ++metrics_.saves;
    metrics_.written_seconds += time.count();
    metrics_.last_seconds = time.count();
  }
  SaveMetrics metrics() const {
    const std::lock_guard lock(mutex_);
    return metrics_;
  }

 private:
  mutable std::mutex mutex_;
  SaveMetrics metrics_;
};

}  // namespace capstan::strategy
