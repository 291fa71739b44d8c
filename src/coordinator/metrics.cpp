// metrics.cpp -- requests reports, stores them, and makes records.
#include "coordinator/metrics.hpp"

#include <algorithm>
#include <utility>

#include "capstan/serialize.hpp"
#include "io/events/trace_file.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

/// How long a record waits for reports. It then uses the previous report of a rank that has not replied.
constexpr std::chrono::milliseconds kAnswersWithin{500};
/// Period of reports while `capstan top` runs, that is until kWatchedFor after its last request.
constexpr std::chrono::seconds kWatchedPeriod{1};
constexpr std::chrono::seconds kWatchedFor{5};
constexpr std::chrono::milliseconds kLongestRest{500};

void add(protocol::PsStatistics& to, const protocol::PsStatistics& more) {
  to.rows_pushed += more.rows_pushed;
  to.bytes_pushed += more.bytes_pushed;
  to.pushes += more.pushes;
  to.rows_sent += more.rows_sent;
  to.keys.add(more.keys);
}

cluster::TrafficMetrics traffic_of(const protocol::WorkerReport& report) {
  return {unpacked(report.pull), unpacked(report.push), unpacked(report.flush), report.keys};
}

}  // namespace

Metrics::Metrics(Sources sources)
    : sources_(sources),
      every_(sources_.runtime.settings().duration("metrics-every")),
      recorded_at_(began_) {}

void Metrics::open() {
  const std::string& run_dir = sources_.runtime.settings().text("run-dir");
  if (run_dir.empty()) return;
  writer_ = std::make_unique<telemetry::MetricsWriter>(run_dir, sources_.runtime.settings(),
                                                       sources_.runtime.log_tag());
  on_ = true;
}

Metrics::Clock::duration Metrics::period(Clock::time_point now) const {
  const bool watched = now.time_since_epoch().count() < watched_until_.load(std::memory_order_relaxed);
  if (every_.count() == 0) return watched ? Clock::duration(kWatchedPeriod) : Clock::duration::max();
  return watched ? std::min<Clock::duration>(every_, kWatchedPeriod) : every_;
}

std::chrono::milliseconds Metrics::round(Clock::time_point now) {
  if (!on()) return kLongestRest;
  if (requests_final_ && requests_final_.exchange(false)) {
    request_reports(now, true);
    return kLongestRest;
  }
  if (awaiting_reports_ && (unanswered_.empty() || now >= requested_at_ + kAnswersWithin)) sample(false);
  const Clock::duration each = period(now);
  if (!awaiting_reports_ && each != Clock::duration::max() && now >= requested_at_ + each &&
      now >= began_ + each)
    request_reports(now, false);
  const Clock::duration next = awaiting_reports_ ? requested_at_ + kAnswersWithin - now
                               : each == Clock::duration::max()
                                   ? Clock::duration(kLongestRest)
                                   : std::max(requested_at_, began_) + each - now;
  return std::clamp(std::chrono::ceil<std::chrono::milliseconds>(next), std::chrono::milliseconds(1),
                    kLongestRest);
}

void Metrics::request_reports(Clock::time_point now, bool last) {
  awaiting_reports_ = true;
  requested_at_ = now;
  unanswered_.clear();
  const cluster::Membership& members = sources_.runtime.membership();
  const protocol::ReportRequest request{now.time_since_epoch() / std::chrono::nanoseconds(1), last ? 1 : 0};
  const auto send = [&](transport::Peer& peer) {
    if (peer.failed()) return;
    peer.send(transport::kReport, transport::as_bytes(request));
    unanswered_.insert(peer.rank());
  };
  for (int ps = 0; ps < sources_.runtime.count(Role::ps); ++ps) {
    const cluster::Member& member = sources_.runtime.member(Role::ps, ps);
    if (members.is_alive(member.rank)) send(sources_.runtime.control_peer(member));
  }
  for (int worker = 0; worker < sources_.dispatcher.workers(); ++worker) {
    if (members.worker_is_alive(worker)) send(*sources_.dispatcher.worker(worker));
  }
  all_received_ = unanswered_.empty();
}

void Metrics::take(const transport::Message& message) {
  const auto header = transport::read_header<protocol::ReportHeader>(message);
  if (!header || !sources_.runtime.membership().knows(message.from)) return;
  const Role role = sources_.runtime.member(message.from).role;
  if (role == Role::worker) {
    workers_[message.from] = from_bytes<protocol::WorkerReport>(message.payload);
  } else if (role == Role::ps) {
    auto report = from_bytes<protocol::PsReport>(message.payload);
    PsReports& reports = ps_[message.from];
    const bool restarted = report.statistics.pushes < reports.last.statistics.pushes ||
                           report.statistics.rows_sent < reports.last.statistics.rows_sent;
    if (restarted) add(reports.before, reports.last.statistics);
    reports.last = std::move(report);
  }
  take_clock(message.from, *header);
  unanswered_.erase(message.from);
  if (unanswered_.empty()) all_received_ = true;
}

/// Assumes that the rank read its clock halfway between request and answer. Processes of one host share a
/// clock.
void Metrics::take_clock(int rank, const protocol::ReportHeader& header) {
  const std::int64_t now = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  io::ClockOffset clock{header.now - (header.asked + now) / 2, (now - header.asked) / 2};
  if (sources_.runtime.member(rank).host == sources_.runtime.self().host) clock = {};
  const auto [known, is_new] = clocks_.try_emplace(rank, clock);
  if (!is_new && clock.error < known->second.error) known->second = clock;
}

void Metrics::trace(const char* what, int rank) const {
  if (io::TraceFile* trace = sources_.runtime.trace(); trace != nullptr)
    trace->instant("loss", what, {{"rank", rank}});
}

void Metrics::note(const cluster::Membership::Change& change) {
  using State = cluster::MemberState;
  const bool was_there = change.before == State::alive || change.before == State::suspected;
  const bool lost = was_there && (change.now == State::dead || change.now == State::fenced);
  const bool back =
      (change.before == State::dead || change.before == State::fenced) && change.now == State::alive;
  const Role role = sources_.runtime.member(change.rank).role;
  if (role == Role::worker && lost) {
    ++lost_workers_;
    trace("worker lost", change.rank);
  } else if (role == Role::ps && lost) {
    ++lost_ps_;
    trace("ps lost", change.rank);
  } else if (role == Role::ps && back) {
    ++restarted_ps_;
    trace("ps recovered", change.rank);
  }
}

void Metrics::fill_workers(telemetry::JobMetrics& job) const {
  for (const Dispatcher::WorkerStatus& status : sources_.dispatcher.worker_statuses()) {
    const int rank = status.rank;
    telemetry::WorkerMetrics worker{.index = status.worker,
                                    .rank = rank,
                                    .host = sources_.runtime.member(rank).host,
                                    .lost = !status.alive,
                                    .ended = status.ended,
                                    .held = status.closures};
    if (const auto report = workers_.find(rank); report != workers_.end()) {
      worker.traffic = traffic_of(report->second);
      worker.use = report->second.use;
      worker.reported = true;
    }
    const cluster::Table& table = sources_.runtime.table();
    if (table.is_late(rank)) {
      ++job.joined_workers;
    } else {
      job.restarted_workers += static_cast<std::uint64_t>(table.times_restarted(rank));
    }
    job.workers.push_back(std::move(worker));
  }
  job.traffic = sources_.runtime.traffic().metrics();
  for (const auto& [rank, report] : workers_) job.traffic.add(traffic_of(report));
}

void Metrics::fill_ps(telemetry::JobMetrics& job) const {
  for (int index = 0; index < sources_.runtime.count(Role::ps); ++index) {
    const cluster::Member& member = sources_.runtime.member(Role::ps, index);
    telemetry::PsMetrics ps{.index = index,
                            .rank = member.rank,
                            .host = member.host,
                            .lost = !sources_.runtime.membership().is_alive(member.rank)};
    if (const auto found = ps_.find(member.rank); found != ps_.end()) {
      ps.report = found->second.last;
      add(ps.report.statistics, found->second.before);
      ps.reported = true;
    }
    job.ps.push_back(std::move(ps));
  }
}

telemetry::JobMetrics Metrics::job_metrics() {
  telemetry::JobMetrics job;
  job.time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  job.elapsed = std::chrono::duration<double>(Clock::now() - began_).count();
  job.coordinator_restarts = sources_.runtime.incarnation();
  job.functions = sources_.queue.statistics();
  fill_workers(job);
  fill_ps(job);
  job.groups = sources_.strategy.update_groups().names();
  job.lost_workers = lost_workers_;
  job.lost_ps = lost_ps_;
  job.restarted_ps = restarted_ps_;
  job.saves = sources_.strategy.save_times().metrics();
  const std::lock_guard lock(mutex_);
  job.scalars = scalars_;
  return job;
}

void Metrics::sample(bool last) {
  awaiting_reports_ = false;
  telemetry::JobMetrics job = job_metrics();
  // The period is counted from the request, so that a slow reply does not delay the next record.
  if (last || (every_.count() > 0 && requested_at_ >= recorded_at_ + every_)) {
    recorded_at_ = requested_at_;
    writer_->record(job, recorded_);
    recorded_ = job;
  }
  const std::lock_guard lock(mutex_);
  before_ = std::exchange(latest_, std::move(job));
}

void Metrics::scalar(const std::string& name, double value, std::int64_t step) {
  if (!on()) return;
  writer_->scalar(name, value, step);
  const std::lock_guard lock(mutex_);
  scalars_[name] = value;
}

std::string Metrics::latest_json() {
  watched_until_ = (Clock::now() + kWatchedFor).time_since_epoch().count();
  const std::lock_guard lock(mutex_);
  return telemetry::to_json(latest_, before_, true)
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Metrics::close() {
  if (!on()) return {};
  std::string summary;
  if (every_.count() > 0) {
    sample(true);
    summary = telemetry::summary_of(recorded_);
    writer_->end(summary);
  }
  writer_.reset();
  return summary;
}

}  // namespace capstan::coordinator
