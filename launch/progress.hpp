// progress.hpp -- progress display: a bar on a terminal, a line every few seconds in a log.
//
// Starts no thread: the thread that waits for the workers calls `update`.
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
  bool terminal = false;                          // redraw one line in place
  std::size_t width = 80;                         // columns of the terminal
  std::chrono::milliseconds redraw_every{100};    // a shorter interval flickers
  std::chrono::milliseconds line_every{5'000};    // interval of log lines without a terminal
  std::chrono::milliseconds rate_window{10'000};  // averaging window of the displayed rate
  std::string_view unit = "triples";              // "B" for bytes
  std::string_view label = {};                    // replaces epoch and loss if not empty
  std::ostream* summary_sink = nullptr;           // for the summary line; null: the sink of the bar

  /// Options for standard error: terminal or log, and the width of the terminal.
  static ProgressOptions for_standard_error();
};

struct ProgressState {
  std::int64_t epoch = 0;  // counted from 1
  std::int64_t epochs = 0;
  std::int64_t done = 0;  // examples over all epochs; starts above 0 in a resumed run
  std::int64_t total = 0;
  double loss = 0;             // NaN until the first value
  bool may_end_early = false;  // before `total`: the time left is a maximum
};

/// For one thread. `sink` must outlive the object.
class Progress {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Clock = std::function<Time()>;

  explicit Progress(std::ostream& sink, ProgressOptions options = ProgressOptions::for_standard_error(),
                    Clock clock = std::chrono::steady_clock::now);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Ends an unfinished bar with a newline, also during stack unwinding.
  ~Progress();

  /// Draws if the interval has passed; otherwise it only reads the clock.
  void update(const ProgressState& state);
  /// Erases the bar so that the caller can print a line; the next `update` redraws it.
  void clear();
  /// Prints the summary line: count, time and rate. Later calls of `update` and `finish` have no effect.
  void finish(const ProgressState& state);

 private:
  struct Sample {
    Time time;
    std::int64_t done;
  };

  double recent_rate() const;
  std::string bar_line(const ProgressState& state) const;
  std::string log_line(const ProgressState& state) const;
  std::string headline(const ProgressState& state) const;
  std::string progress_text(const ProgressState& state) const;

  std::ostream& sink_;
  ProgressOptions options_;
  Clock clock_;
  std::deque<Sample> samples_;  // covers about the last `rate_window`
  Sample first_{};
  Time drawn_at_{};
  bool started_ = false;
  bool on_screen_ = false;
  bool finished_ = false;
};

}  // namespace capstan::launch
