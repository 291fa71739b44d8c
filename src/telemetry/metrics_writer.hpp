// metrics_writer.hpp -- the files of figures in the run directory, written by a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/settings.hpp"
#include "io/append_file.hpp"
#include "io/events/event_file.hpp"
#include "telemetry/job_metrics.hpp"

namespace capstan::telemetry {

/// A disk that is slow delays nobody, and one that is full is a warning. Any thread.
class MetricsWriter {
 public:
  MetricsWriter(std::filesystem::path run_dir, const Settings& settings, std::string log_tag);
  /// Waits until all has been written.
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  /// A line of metrics.jsonl.
  void record(JobMetrics now, JobMetrics before);
  /// A value of the program's, for TensorBoard. In the file within a second or so.
  void scalar(const std::string& name, double value, std::int64_t step);
  /// summary.txt.
  void end(std::string summary);

 private:
  void add(std::function<void()> work);
  void run();
  void write_record(const JobMetrics& now, const JobMetrics& before);
  void write_scalars();

  struct Scalar {
    std::string name;
    double value;
    std::int64_t step;
    double time;
  };

  std::filesystem::path run_dir_;
  std::filesystem::path prometheus_;  // empty: none
  std::string log_tag_;
  io::AppendFile lines_;
  io::EventFile events_;
  bool warned_ = false;  // of summary.txt
  bool warned_of_prometheus_ = false;
  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<std::function<void()>> work_;
  std::vector<Scalar> scalars_;
  bool dropped_ = false;
  bool over_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace capstan::telemetry
