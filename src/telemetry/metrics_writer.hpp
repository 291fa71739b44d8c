// metrics_writer.hpp -- writes the metrics files of the run directory on a background thread.
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

/// Writes in the background: a slow disk blocks no caller, a full one causes a warning. Thread-safe.
class MetricsWriter {
 public:
  MetricsWriter(std::filesystem::path run_dir, const Settings& settings, std::string log_tag);
  /// Blocks until all queued data has been written.
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  /// Appends a line to metrics.jsonl.
  void record(JobMetrics now, JobMetrics before);
  /// Records a value of the program for TensorBoard. Written within about one second.
  void scalar(const std::string& name, double value, std::int64_t step);
  /// Writes summary.txt.
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
  io::AppendFile records_;
  io::EventFile events_;
  bool warned_of_summary_ = false;
  bool warned_of_prometheus_ = false;
  std::mutex mutex_;
  std::condition_variable work_available_;
  std::deque<std::function<void()>> work_;
  std::vector<Scalar> scalars_;
  bool warned_of_drop_ = false;
  bool stopping_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace capstan::telemetry
