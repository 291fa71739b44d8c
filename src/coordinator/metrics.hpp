// metrics.hpp -- the metrics of the job: collects reports of all ranks and makes records of them.
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

/// With --run-dir, requests a report from each rank every --metrics-every; ps and workers answer between two
/// other tasks. Nothing waits for an answer, and a thread of its own writes the files. Used by the thread
/// that drives the control loop, unless stated otherwise.
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

  /// With --run-dir: writes metrics from now on. Called by the thread that has claimed the directory.
  void open();
  bool on() const noexcept { return on_; }
  /// Requests reports and writes a record when they are due. Returns the time until the next call is due.
  std::chrono::milliseconds round(Clock::time_point now);
  /// Handler of kReport.
  void take(const transport::Message& message);
  /// Counts losses and returns of members.
  void note(const cluster::Membership::Change& change);

  /// Records a value of the program: in the next record, and each one for TensorBoard. Any thread.
  void scalar(const std::string& name, double value, std::int64_t step);
  /// Returns the latest metrics with workers as JSON; requests reports every second for some seconds. Any
  /// thread.
  std::string look();

  /// The next round requests the last reports; `all_in` is true once all have arrived. Any thread.
  void ask_for_the_last_time() noexcept {
    all_in_ = false;
    asks_last_ = true;
  }
  bool all_in() const noexcept { return all_in_; }
  /// Clock offsets of ranks that have answered, by rank.
  const std::map<int, io::ClockOffset>& clocks() const noexcept { return clocks_; }
  /// Writes the last record and the summary, which it returns; "" without --run-dir. REQUIRES: no thread
  /// drives the loop.
  std::string close();

 private:
  void ask(Clock::time_point now, bool last);
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

  Sources of_;
  std::unique_ptr<telemetry::MetricsWriter> writer_;
  std::atomic<bool> on_{false};  // there is a writer
  Clock::duration every_;
  const Clock::time_point began_ = Clock::now();
  std::map<int, protocol::WorkerReport> workers_;  // by rank
  std::map<int, PsReports> ps_;                    // by rank
  std::map<int, io::ClockOffset> clocks_;          // by rank
  std::set<int> silent_;                           // ranks that have not answered yet
  bool asking_ = false;
  Clock::time_point asked_{};
  Clock::time_point recorded_at_{};  // when the ranks of the last record were asked
  std::uint64_t lost_workers_ = 0;
  std::uint64_t lost_ps_ = 0;
  std::uint64_t restarted_ps_ = 0;
  telemetry::JobMetrics recorded_;  // the last record

  std::atomic<bool> asks_last_{false};
  std::atomic<bool> all_in_{false};
  std::atomic<Clock::rep> watched_until_{0};
  std::mutex mutex_;
  telemetry::JobMetrics latest_;  // guarded by the mutex, as all below
  telemetry::JobMetrics before_;
  std::map<std::string, double> scalars_;
};

}  // namespace capstan::coordinator
