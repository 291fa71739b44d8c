// progress.hpp -- how far the training is: a bar on a terminal, a line every few seconds in a log.
//
// No thread: whoever waits for the workers calls `update`, as often as it likes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace capstan::launch {

struct ProgressOptions {
  bool terminal = false;                        // one line that is drawn over itself
  std::size_t width = 80;                       // of the terminal
  std::chrono::milliseconds redraw_every{100};  // more often only flickers
  std::chrono::milliseconds line_every{5'000};  // where there is no terminal
  std::chrono::milliseconds rate_over{10'000};  // the rate shown is that of so much of the past
  std::string_view unit = "triples";
  std::string_view label = {};  // in place of epochs and loss: what is done, where there are none

  /// What suits standard error of this process.
  static ProgressOptions for_standard_error();
};

struct ProgressState {
  std::int64_t epoch = 0;  // counted from 1
  std::int64_t epochs = 0;
  std::int64_t done = 0;  // examples, over all epochs; starts above 0 in a run that was resumed
  std::int64_t total = 0;
  double loss = 0;  // NaN while there is none
};

/// Used by one thread. The sink must outlive it.
class Progress {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Clock = std::function<Time()>;

  explicit Progress(std::ostream& sink, ProgressOptions options = ProgressOptions::for_standard_error(),
                    Clock clock = std::chrono::steady_clock::now);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Leaves the cursor at the start of a line, also when an exception goes by.
  ~Progress();

  /// Draws if it is time to. Cheap otherwise.
  void update(const ProgressState& state);
  /// Takes the bar off the terminal, so that somebody may print a line; the next `update` draws it again.
  void clear();
  /// The last line: what was done in which time. Later calls of `update` and `finish` do nothing.
  void finish(const ProgressState& state);

 private:
  struct Sample {
    Time time;
    std::int64_t done;
  };

  double recent_rate() const;
  std::string bar_line(const ProgressState& state) const;
  std::string log_line(const ProgressState& state) const;
  std::string what(const ProgressState& state) const;
  std::string how_far(const ProgressState& state) const;

  std::ostream& sink_;
  ProgressOptions options_;
  Clock clock_;
  std::deque<Sample> samples_;  // about the last `rate_over`
  Sample first_{};
  Time drawn_at_{};
  bool started_ = false;
  bool on_screen_ = false;
  bool finished_ = false;
};

/// "3.2 s", "4:05 min", "2:30 h"
std::string short_time(std::chrono::milliseconds time);
/// "950", "21.4k", "1.25M", "1.25G"
std::string short_count(double count);

}  // namespace capstan::launch
