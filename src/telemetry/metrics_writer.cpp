// metrics_writer.cpp -- a line of work, and one thread that does it.
#include "telemetry/metrics_writer.hpp"

#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "cluster/runtime.hpp"

namespace capstan::telemetry {
namespace {

/// Of a disk that hangs; what comes then is dropped.
constexpr std::size_t kMostWork = 100'000;
/// Scalars may come often, and wake nobody.
constexpr std::chrono::seconds kScalarsEvery{1};

double time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path place_of(const std::string& file, const std::filesystem::path& run_dir) {
  const std::filesystem::path path = file;
  return file.empty() || path.has_parent_path() ? path : run_dir / path;
}

/// What TensorBoard shows of a record, over the functions that have ended.
using Curve = std::pair<std::string, nlohmann::json::json_pointer>;  // tag, place in the record
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
      prometheus_(place_of(settings.text("prometheus-file"), run_dir_)),
      log_tag_(std::move(log_tag)),
      lines_(run_dir_ / "metrics.jsonl"),
      events_(run_dir_ / "events", cluster::host_name(), time_now()),
      thread_([this] { run(); }) {}

MetricsWriter::~MetricsWriter() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  come_.notify_one();
}

void MetricsWriter::add(std::function<void()> work) {
  bool first_dropped = false;
  {
    const std::lock_guard lock(mutex_);
    if (work_.size() < kMostWork) {
      work_.push_back(std::move(work));
    } else {
      first_dropped = !std::exchange(dropped_, true);
    }
  }
  if (first_dropped) log::warn("{}: so slow that figures are dropped", run_dir_.string());
  come_.notify_one();
}

void MetricsWriter::run() {
  log::set_rank_tag(log_tag_);
  std::unique_lock lock(mutex_);
  while (true) {
    come_.wait_for(lock, kScalarsEvery, [this] { return over_ || !work_.empty(); });
    if (work_.empty()) {
      const bool last = over_;
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
      log::warn("figures are not written: {}", error.what());
    }
    lock.lock();
  }
}

void MetricsWriter::record(JobMetrics now, JobMetrics before) {
  add([this, now = std::move(now), before = std::move(before)] { write_record(now, before); });
}

void MetricsWriter::write_record(const JobMetrics& now, const JobMetrics& before) {
  const nlohmann::json record = to_json(now, before, false);
  lines_.append(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
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
  if (scalars_.size() < kMostWork) scalars_.push_back({name, value, step, time});
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
    (void)io::replace_text(run_dir_ / "summary.txt", summary, warned_);
  });
}

}  // namespace capstan::telemetry
