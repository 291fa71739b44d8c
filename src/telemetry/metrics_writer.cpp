// metrics_writer.cpp -- a queue of write operations and the thread that runs them.
#include "telemetry/metrics_writer.hpp"

#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "cluster/runtime.hpp"

namespace capstan::telemetry {
namespace {

/// Maximum length of the queue, which grows while a disk hangs; further work is dropped.
constexpr std::size_t kMaxQueuedWork = 100'000;
/// Scalars may be frequent, so they do not signal the thread, which writes them at this interval.
constexpr std::chrono::seconds kFlushInterval{1};

double time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path resolve_path(const std::string& file, const std::filesystem::path& run_dir) {
  const std::filesystem::path path = file;
  return file.empty() || path.has_parent_path() ? path : run_dir / path;
}

/// Values of a record that TensorBoard plots against the number of completed functions.
using Curve = std::pair<std::string, nlohmann::json::json_pointer>;  // tag, location in the record
const std::vector<Curve>& curves() {
  static const std::vector<Curve> all = [] {
    std::vector<Curve> made;
    for (const char* path :
         {"/functions/per_second", "/functions/queued", "/functions/execution/p50",
          "/functions/execution/p99", "/workers", "/pull/rows_per_second", "/pull/bytes_per_second",
          "/pull/p50", "/pull/p99", "/push/rows_per_second", "/push/bytes_per_second", "/push/p50",
          "/push/p99", "/flush/p50", "/flush/p99", "/balance/bytes", "/balance/rows_pushed"}) {
      made.emplace_back(std::string("capstan") + path, nlohmann::json::json_pointer(path));
    }
    return made;
  }();
  return all;
}

}  // namespace

MetricsWriter::MetricsWriter(std::filesystem::path run_dir, const Settings& settings, std::string log_tag)
    : run_dir_(std::move(run_dir)),
      prometheus_(resolve_path(settings.text("prometheus-file"), run_dir_)),
      log_tag_(std::move(log_tag)),
      records_(run_dir_ / "metrics.jsonl"),
      events_(run_dir_ / "events", cluster::host_name(), time_now()),
      thread_([this] { run(); }) {}

MetricsWriter::~MetricsWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_available_.notify_one();
}

void MetricsWriter::add(std::function<void()> work) {
  bool first_dropped = false;
  {
    const std::lock_guard lock(mutex_);
    if (work_.size() < kMaxQueuedWork) {
      work_.push_back(std::move(work));
    } else {
      first_dropped = !std::exchange(warned_of_drop_, true);
    }
  }
  if (first_dropped) log::warn("{}: the disk is too slow, metrics are dropped", run_dir_.string());
  work_available_.notify_one();
}

void MetricsWriter::run() {
  log::set_rank_tag(log_tag_);
  std::unique_lock lock(mutex_);
  while (true) {
    work_available_.wait_for(lock, kFlushInterval, [this] { return stopping_ || !work_.empty(); });
    if (work_.empty()) {
      const bool last = stopping_;
      lock.unlock();
      write_scalars();
      lock.lock();
      if (last) return;
      continue;
    }
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    try {
      work();
    } catch (const std::exception& error) {
      log::warn("cannot write metrics: {}", error.what());
    }
    lock.lock();
  }
}

void MetricsWriter::record(JobMetrics now, JobMetrics before) {
  add([this, now = std::move(now), before = std::move(before)] { write_record(now, before); });
}

void MetricsWriter::write_record(const JobMetrics& now, const JobMetrics& before) {
  const nlohmann::json record = to_json(now, before, false);
  records_.append(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (!prometheus_.empty()) (void)io::replace_text(prometheus_, prometheus_text(now), warned_of_prometheus_);
  const auto step = static_cast<std::int64_t>(now.functions.finished + now.functions.failed);
  for (const auto& [tag, path] : curves()) {
    if (record.contains(path) && record[path].is_number())
      events_.scalar(tag, record[path].get<double>(), step, now.time);
  }
  write_scalars();
}

void MetricsWriter::scalar(const std::string& name, double value, std::int64_t step) {
  const double time = time_now();
  const std::lock_guard lock(mutex_);
  if (scalars_.size() < kMaxQueuedWork) scalars_.push_back({name, value, step, time});
}

void MetricsWriter::write_scalars() {
  std::vector<Scalar> scalars;
  {
    const std::lock_guard lock(mutex_);
    scalars.swap(scalars_);
  }
  for (const Scalar& one : scalars) events_.scalar(one.name, one.value, one.step, one.time);
  events_.flush();
}

void MetricsWriter::end(std::string summary) {
  add([this, summary = std::move(summary)] {
    (void)io::replace_text(run_dir_ / "summary.txt", summary, warned_of_summary_);
  });
}

}  // namespace capstan::telemetry
