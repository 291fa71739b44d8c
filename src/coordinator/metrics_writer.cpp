// metrics_writer.cpp -- a line of work, and one thread that does it.
#include "coordinator/metrics_writer.hpp"

#include <utility>

#include "base/log.hpp"

namespace capstan::coordinator {
namespace {

/// Of a disk that hangs; what comes then is dropped.
constexpr std::size_t kMostWork = 100'000;

}  // namespace

MetricsWriter::MetricsWriter(std::filesystem::path run_dir, const Settings&, std::string log_tag)
    : run_dir_(std::move(run_dir)),
      log_tag_(std::move(log_tag)),
      lines_(run_dir_ / "metrics.jsonl"),
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
    come_.wait(lock, [this] { return over_ || !work_.empty(); });
    if (work_.empty()) return;
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

void MetricsWriter::record(JobFigures now, JobFigures before) {
  add([this, now = std::move(now), before = std::move(before)] { write_record(now, before); });
}

void MetricsWriter::write_record(const JobFigures& now, const JobFigures& before) {
  const nlohmann::json record = to_json(now, before, false);
  lines_.append(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void MetricsWriter::scalar(const std::string&, double, std::int64_t) {}

void MetricsWriter::end(std::string summary) {
  add([this, summary = std::move(summary)] {
    (void)io::replace_text(run_dir_ / "summary.txt", summary, warned_);
  });
}

}  // namespace capstan::coordinator
