// metrics.hpp -- the metrics of the job: collects reports of all ranks and combines them into records.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "cluster/runtime.hpp"
#include "coordinator/scheduling/closure_queue.hpp"
#include "coordinator/scheduling/dispatcher.hpp"
#include "io/events/merge_traces.hpp"
#include "strategy/strategy.hpp"
#include "telemetry/job_metrics.hpp"
#include "telemetry/metrics_writer.hpp"

namespace capstan::coordinator {

/// With --run-dir, requests a report from each rank every --metrics-every. Ps and workers reply between other
/// messages; no thread blocks on a reply. A separate thread writes the files. Used by the thread that drives
/// the control loop, unless stated otherwise.
///
/// Has more members than most classes: the request in progress, the reports so far, and a copy of the latest
/// record for other threads.
class Metrics {
 public:
  using Clock = std::chrono::steady_clock;
  struct Sources {
    cluster::Runtime& runtime;
    strategy::Strategy& strategy;
    const ClosureQueue& queue;
    const Dispatcher& dispatcher;
  };

  explicit Metrics(Sources sources);

  /// With --run-dir, starts to write metrics. Called by the thread that has claimed the directory.
  void open();
  bool on() const noexcept { return on_; }
  /// Requests reports and writes a record when they are due. Returns the time until the next call is due.
  std::chrono::milliseconds round(Clock::time_point now);
  /// Handler of kReport.
  void take(const transport::Message& message);
  /// Counts losses and returns of members.
  void note(const cluster::Membership::Change& change);

  /// Records a value of the program. TensorBoard gets every value, the next record only the last one. Any
  /// thread.
  void scalar(const std::string& name, double value, std::int64_t step);
  /// Returns the latest metrics, including those of each worker, as JSON. Also requests reports every second
  /// for the next seconds. Any thread.
  std::string latest_json();

  /// Makes the next round request the last reports; all_received() returns true once all have arrived. Any
  /// thread.
  void request_final_reports() noexcept {
    all_received_ = false;
    requests_final_ = true;
  }
  bool all_received() const noexcept { return all_received_; }
  /// Returns the clock offsets of ranks that have replied, by rank.
  const std::map<int, io::ClockOffset>& clocks() const noexcept { return clocks_; }
  /// Writes the last record and the summary, which it returns; "" without --run-dir. REQUIRES: no thread
  /// drives the loop.
  std::string close();

 private:
  void request_reports(Clock::time_point now, bool last);
  void take_clock(int rank, const protocol::ReportHeader& header);
  void trace(const char* what, int rank) const;
  void sample(bool last);
  telemetry::JobMetrics job_metrics();
  void fill_workers(telemetry::JobMetrics& job) const;
  void fill_ps(telemetry::JobMetrics& job) const;
  Clock::duration period(Clock::time_point now) const;

  struct PsReports {
    protocol::PsStatistics before = {};  // sum of previous processes of this ps
    protocol::PsReport last = {};
  };

  Sources sources_;
  std::unique_ptr<telemetry::MetricsWriter> writer_;
  std::atomic<bool> on_{false};  // there is a writer
  Clock::duration every_;
  const Clock::time_point began_ = Clock::now();
  std::map<int, protocol::WorkerReport> workers_;  // by rank
  std::map<int, PsReports> ps_;                    // by rank
  std::map<int, io::ClockOffset> clocks_;          // by rank
  std::set<int> unanswered_;                       // ranks that have not answered yet
  bool awaiting_reports_ = false;
  Clock::time_point requested_at_{};
  Clock::time_point recorded_at_{};  // time of the requests for the last record
  std::uint64_t lost_workers_ = 0;
  std::uint64_t lost_ps_ = 0;
  std::uint64_t restarted_ps_ = 0;
  telemetry::JobMetrics recorded_;  // the last record

  std::atomic<bool> requests_final_{false};
  std::atomic<bool> all_received_{false};
  std::atomic<Clock::rep> watched_until_{0};
  std::mutex mutex_;
  telemetry::JobMetrics latest_;  // guarded by the mutex, as all below
  telemetry::JobMetrics before_;
  std::map<std::string, double> scalars_;
};

}  // namespace capstan::coordinator
