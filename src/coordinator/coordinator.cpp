// coordinator.cpp -- construction, rounds and end of the coordinator; ClusterCoordinator.
#include "coordinator/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <string_view>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "base/stacks.hpp"
#include "capstan/coordinator.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "coordinator/scheduling/function_name.hpp"
#include "coordinator/worker/worker_server.hpp"
#include "strategy/disk_timeout.hpp"
#include "telemetry/trace.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace coordinator {
namespace {

/// How long a waiting thread polls before it sleeps: less if ranks that it waits for may need its core.
constexpr ControlLoop::Polls kCoordinatorPolls{std::chrono::milliseconds(1), std::chrono::microseconds(200)};

/// How long the end of a job waits for the last metrics of its ranks.
constexpr std::chrono::milliseconds kLastMetrics{300};

/// Stops the interim thread, before any handler is registered on the control fabric. Returns `strategy`.
strategy::Strategy& with_control_of(strategy::Strategy& strategy) {
  strategy.control().stop_interim();
  return strategy;
}

void take_inputs(ClosureQueue::Extras& extras, detail::PackedArguments& arguments) {
  if (arguments.inputs.empty()) return;
  if (!extras) extras = std::make_unique<ClosureExtras>();
  extras->inputs = std::move(arguments.inputs);
}

}  // namespace

Coordinator::Coordinator(strategy::Strategy& strategy)
    : strategy_(with_control_of(strategy)),
      runtime_(*strategy.runtime()),
      members_(runtime_.membership()),
      loop_(std::make_shared<ControlLoop>(
          runtime_.control(), [this] { return round(); }, kCoordinatorPolls)),
      queue_(std::make_shared<ClosureQueue>(
          static_cast<std::size_t>(runtime_.settings().integer("queue-limit")), loop_, members_)),
      dispatcher_(strategy, members_, *queue_,
                  static_cast<std::size_t>(runtime_.settings().integer("max-inflight-per-worker"))),
      restarted_workers_(runtime_, dispatcher_,
                         [this](transport::Peer& peer, cluster::MemberState state, const std::string& cause) {
                           (void)lose(peer, state, cause);
                         }),
      record_(runtime_, strategy_, *queue_),
      failure_detector_(runtime_.in_process() ? std::chrono::milliseconds(0)
                                              : runtime_.settings().duration("heartbeat-timeout")),
      ps_recovery_(
          {runtime_, strategy_, *queue_, dispatcher_, restarted_workers_, failure_detector_, record_}),
      watchdog_(runtime_.settings().duration("watchdog-timeout")),
      metrics_({runtime_, strategy_, *queue_, dispatcher_}),
      subscriptions_(runtime_.control()),
      late_workers_(
          runtime_, [this] { return status(); },
          [this] {
            std::string json = metrics_.latest_json();
            loop_->nudge_sleeper();  // reports are requested more often while `capstan top` runs
            return json;
          },
          [this] { loop_->nudge_sleeper(); }),
      last_worker_(runtime_, *queue_, [this] { return late_workers_.may_join(); }) {
  dispatcher_.reserve(runtime_.count(Role::worker) + runtime_.table().late);
  dispatcher_.delay_start(runtime_.settings().duration("schedule-start-delay"),
                          runtime_.settings().duration("schedule-start-delay-max"));
  start_embedded_workers();
  subscriptions_.on_message(transport::kClosuresDone,
                            [this](const transport::Message& message) { dispatcher_.take_results(message); });
  subscriptions_.on_message(transport::kGivenBack,
                            [this](const transport::Message& message) { dispatcher_.take_back(message); });
  subscriptions_.on_message(transport::kWorkerClosed, [this](const transport::Message& message) {
    const auto worker = transport::read_header<protocol::WorkerDead>(message);
    if (worker) dispatcher_.note_applied(worker->rank, message.from);
  });
  subscriptions_.on_message(transport::kJoin, [this](const transport::Message& message) {
    restarted_workers_.request_admission(message);
  });
  subscriptions_.on_message(transport::kMemberKnown, [this](const transport::Message& message) {
    const auto rank = transport::read_header<std::int32_t>(message);
    if (rank) restarted_workers_.note_known(*rank, message.from);
  });
  subscriptions_.on_message(transport::kPsReturned, [this](const transport::Message& message) {
    ps_recovery_.note_returned(message);
  });
  subscriptions_.on_message(transport::kNotTakenOver, [this](const transport::Message& message) {
    ps_recovery_.note_failed_spare(message);
  });
  subscriptions_.on_message(transport::kReplicaLost, [this](const transport::Message& message) {
    ps_recovery_.drop_replica(message);
  });
  // Opens the connection of a ps or worker; its first heartbeat follows.
  subscriptions_.on_message(transport::kHello, [](const transport::Message&) {});
  subscriptions_.on_message(transport::kHeartbeat,
                            [this](const transport::Message& message) { take_heartbeat(message); });
  subscriptions_.on_message(transport::kReport,
                            [this](const transport::Message& message) { metrics_.take(message); });
  subscriptions_.on_message(transport::kLeave,
                            [this](const transport::Message& message) { dispatcher_.leave(message.from); });
  subscriptions_.on_failure([this](transport::Peer& peer) { on_failure(peer); });
  members_.on_change([this](const cluster::Membership::Change& change) { on_member_change(change); });
  try {
    runtime_.control().keep_unhandled(false);  // messages that were kept have handlers now
    queue_->number_from(runtime_.coordinator_memory().read().next_closure);
    add_workers();
    if (runtime_.incarnation() > 0) recover();
    strategy_.control().begin_scheduler(queue_);
    loop_->start([tag = runtime_.log_tag()] { log::set_rank_tag(tag); });
    late_workers_.open();
    metrics_.open();
  } catch (...) {
    end();
    throw;
  }
}

Coordinator::~Coordinator() { end(); }

void Coordinator::end() {
  late_workers_.close();
  strategy_.control().end_scheduler(transport::deadline_in(strategy::disk_timeout(strategy_)));
  end_metrics();
  loop_->stop();
  queue_->break_down(Code::cancelled, "the coordinator ended before this function did");
  // A restarted coordinator would find no workers.
  if (!runtime_.in_process()) cluster::Heartbeat::forbid_restart();
  subscriptions_.end();
  members_.on_change({});
  for (int ps = 0; ps < runtime_.count(Role::ps); ++ps) {
    transport::Peer& peer = runtime_.control_peer(runtime_.member(Role::ps, ps));
    if (!peer.failed()) peer.send(transport::kHeartbeat, {});
  }
  dispatcher_.send_to_all(transport::kShutdown);
  restarted_workers_.send_to_all(transport::kShutdown);
  runtime_.control().progress();
  embedded_workers_.clear();
}

/// Requests a last report of each rank for the last record, and waits briefly for the answers.
void Coordinator::end_metrics() {
  if (!metrics_.on()) return;
  if (!queue_->broken()) {
    metrics_.request_final_reports();
    loop_->nudge();
    loop_->wait([this] { return metrics_.all_received(); }, transport::deadline_in(kLastMetrics));
  }
  loop_->stop();
  const std::string summary = metrics_.close();
  telemetry::end_trace(runtime_, metrics_.clocks());
  for (std::size_t at = 0; at < summary.size();) {
    const std::size_t end = summary.find('\n', at);
    log::info("{}", std::string_view(summary).substr(at, end - at));
    at = end + 1;
  }
}

ControlLoop::Round Coordinator::round() {
  const bool received = runtime_.control().progress() != 0;
  if (late_workers_.any()) {
    for (cluster::Member& member : late_workers_.take())
      restarted_workers_.request_admission(std::move(member));
  }
  const bool ps_returned = ps_recovery_.advance();
  const bool returned = restarted_workers_.advance() || ps_returned;
  if (returned) record_.note_change();
  record_.update();
  last_worker_.check();
  check_silent_ps();
  const bool timed = queue_->next_deadline() != ClosureQueue::Clock::time_point::max();
  const auto now = timed || watchdog_.on() || failure_detector_.on() || metrics_.on()
                       ? ClosureQueue::Clock::now()
                       : ClosureQueue::Clock::time_point{};
  if (failure_detector_.on()) {
    if (returned) watch_restarted_workers(now);
    check_silent_ranks(now);
  }
  const bool expired = timed && queue_->expire(now);
  if (expired) dispatcher_.cancel_expired();
  overruns_ = overruns_ || expired;
  if (overruns_) check_overruns(ClosureQueue::Clock::now());
  const bool sent = dispatcher_.dispatch();
  dispatcher_.free_resources();
  while (transport::Peer* leaver = dispatcher_.drained_worker()) release(*leaver);
  ControlLoop::Round round{received || returned || sent || expired, dispatcher_.rest()};
  if (const auto next = queue_->next_deadline(); next != ClosureQueue::Clock::time_point::max()) {
    round.rest = std::min(round.rest, std::chrono::ceil<ControlLoop::Time>(std::max(next - now, {})));
  }
  if (!members_.all_alive(Role::ps))
    round.rest = std::min(round.rest, ControlLoop::Time(std::chrono::milliseconds(100)));
  if (failure_detector_.on()) round.rest = std::min(round.rest, failure_detector_.until_next_check(now));
  if (metrics_.on()) round.rest = std::min(round.rest, metrics_.round(now));
  if (watchdog_.on()) {
    check_for_stall(now);
    round.rest = std::min(round.rest, watchdog_.period());
  }
  return round;
}

void Coordinator::check_for_stall(Watchdog::Clock::time_point now) {
  if (now < next_stall_check_) return;
  next_stall_check_ = now + watchdog_.period();
  const CoordinatorStatistics sofar = queue_->statistics();
  const bool in_flight = sofar.running + sofar.queued > 0;
  if (watchdog_.stalled(now, sofar.execution.count, in_flight)) report_stall();
}

void Coordinator::report_stall() {
  const CoordinatorStatistics sofar = queue_->statistics();
  log::warn("no function has ended for {} s; {} are with workers, {} are queued, {} wait for arguments",
            runtime_.settings().duration("watchdog-timeout").count() / 1e3, sofar.running, sofar.queued,
            sofar.waiting);
  const auto now = Watchdog::Clock::now();
  for (const auto& busy : dispatcher_.busy_workers()) {
    log::warn("worker {} has {} of them, has not replied for {:.1f} s, and runs {}", busy.worker,
              busy.closures, std::chrono::duration<double>(now - busy.since).count(),
              short_name(detail::registered_function(busy.first).name));
  }
  for (const cluster::Member& member : runtime_.members()) {
    if (member.role == Role::coordinator) continue;
    transport::Peer& peer = runtime_.control_peer(member);
    if (!peer.failed()) peer.send(transport::kDumpStacks, {});
  }
  runtime_.control().progress();
  write_stacks();
}

void Coordinator::start_embedded_workers() {
  for (const auto& rank : runtime_.embedded()) {
    if (rank->self().role != Role::worker) continue;
    embedded_workers_.emplace_back([rank] {
      try {
        WorkerServer(rank).run();
      } catch (const std::exception& error) {
        log::error("the worker of this process ended: {}", error.what());
      }
    });
  }
}

void Coordinator::check_worker(int worker) const {
  if (worker >= 0 && worker < dispatcher_.workers()) return;
  throw Error(Code::out_of_range,
              fmt::format("there are workers 0 to {}, not {}", dispatcher_.workers() - 1, worker));
}

std::shared_ptr<Result> Coordinator::schedule(std::uint32_t function, detail::PackedArguments arguments,
                                              ClosureQueue::Extras extras) {
  record_.require_restored();
  if (extras && extras->affinity != kAnyWorker) check_worker(extras->affinity);
  take_inputs(extras, arguments);
  return queue_->put(function, std::move(arguments.bytes), std::move(extras), std::move(arguments.named));
}

std::shared_ptr<Result> Coordinator::schedule_on(int worker, std::uint32_t function,
                                                 detail::PackedArguments arguments) {
  check_worker(worker);
  ClosureQueue::Extras extras;
  take_inputs(extras, arguments);
  return queue_->put_for(worker, function, std::move(arguments.bytes), std::move(extras),
                         std::move(arguments.named));
}

std::vector<int> Coordinator::worker_indices() {
  // A program that schedules one closure per worker would otherwise schedule none.
  const auto any = [this] { return members_.alive(Role::worker) > 0 || queue_->broken(); };
  if (!any()) loop_->wait(any, std::nullopt);
  std::vector<int> indices;
  for (int worker = 0; worker < dispatcher_.workers(); ++worker) {
    if (members_.worker_is_alive(worker)) indices.push_back(worker);
  }
  return indices;
}

/// If a closure runs --deadline-grace past its deadline, its worker is fenced, so that its agent restarts it.
void Coordinator::check_overruns(cluster::FailureDetector::Clock::time_point now) {
  const auto grace = runtime_.settings().duration("deadline-grace");
  const Dispatcher::Overrun overrun = dispatcher_.overrun();
  overruns_ = overrun.peer != nullptr && grace.count() > 0 && !runtime_.in_process();
  if (!overruns_ || now < overrun.deadline + grace) return;
  transport::Peer& peer = *overrun.peer;
  // Without an agent, the fenced process would continue, and no other process would replace it.
  const bool ends = runtime_.table().restarts > 0 || runtime_.table().is_late(peer.rank());
  if (!ends) {
    overruns_ = false;
    return;
  }
  const std::string text =
      fmt::format("{} ran {} ms past its deadline (--deadline-grace) on {}, which is fenced",
                  short_name(detail::registered_function(overrun.function).name), grace.count(), peer.name());
  log::warn("{}", text);
  peer.send(transport::kFenced, {}, std::as_bytes(std::span(text)));
  (void)lose(peer, cluster::MemberState::fenced, text);
}

/// Text for `capstan status`. Called on the listener's thread.
std::string Coordinator::status() const {
  const CoordinatorStatistics sofar = queue_->statistics();
  const std::chrono::duration<double> up = std::chrono::steady_clock::now() - began_;
  std::string text = fmt::format("up for {:.1f} s\n{} ps, {} workers", up.count(), runtime_.count(Role::ps),
                                 members_.alive(Role::worker));
  if (runtime_.count(Role::spare) > 0)
    text += fmt::format(", {} spares", ps_recovery_.failovers().standbys());
  text += "\n";
  text += fmt::format("functions: {} ended, {} with workers, {} queued, {} wait for arguments\n",
                      sofar.finished + sofar.failed, sofar.running, sofar.queued, sofar.waiting);
  const auto line = [&](int rank) {
    const cluster::Member& member = members_.member(rank);
    const std::string now = ps_recovery_.failovers().role_of(rank);
    text += fmt::format("{}, pid {}{}", member.name(), member.pid, now.empty() ? "" : ", " + now);
    if (const auto status = members_.status(rank); status.state != cluster::MemberState::alive) {
      const std::chrono::duration<double> since = cluster::Membership::Clock::now() - status.since;
      text += fmt::format(": {} for {:.1f} s{}{}", to_string(status.state), since.count(),
                          status.cause.empty() ? "" : ", ", status.cause);
    }
    text += "\n";
  };
  for (const cluster::Member& member : runtime_.members()) {
    if (member.role != Role::worker) line(member.rank);
  }
  for (const int rank : members_.worker_ranks()) line(rank);
  return text;
}

}  // namespace coordinator

std::vector<std::byte> detail::fetch_bytes(const coordinator::Result& result) {
  using State = coordinator::Result::State;
  coordinator::ResultBoard& board = *result.board;
  const auto settled = [&] { return !result.pending() || board.broken; };
  if (settled()) {
    board.fetches.add(0);
  } else {
    const auto begin = std::chrono::steady_clock::now();
    while (!settled()) board.waiter->wait(settled, std::nullopt);
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
    board.fetches.add(static_cast<std::uint64_t>(waited.count()));
  }
  if (result.pending()) {
    const std::lock_guard lock(board.mutex);
    throw *board.breakdown;
  }
  if (result.state == State::ready) return result.bytes;
  throw Error(result.code,
              std::string(reinterpret_cast<const char*>(result.bytes.data()), result.bytes.size()));
}

bool detail::wait_for(const coordinator::Result& result, std::chrono::milliseconds timeout) {
  const auto settled = [&] { return is_ready(result); };
  return settled() || result.board->waiter->wait(settled, std::chrono::steady_clock::now() + timeout);
}

bool detail::is_ready(const coordinator::Result& result) { return !result.pending() || result.board->broken; }

std::vector<Split> splits(std::int64_t count) {
  if (count < 0) {
    throw Error(Code::invalid_argument, fmt::format("splits: the count is {}; it must be at least 0", count));
  }
  std::vector<Split> all;
  for (std::int64_t index = 0; index < count; ++index) all.push_back({index, count});
  return all;
}

namespace {

/// Returns the strategy's Coordinator, created on first use: two would receive each other's messages.
std::shared_ptr<coordinator::Coordinator> coordinator_of(strategy::Strategy& strategy) {
  static std::mutex mutex;
  static std::map<const strategy::Strategy*, std::weak_ptr<coordinator::Coordinator>> coordinators;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = coordinators.find(&strategy); found != coordinators.end()) {
      if (auto shared = found->second.lock()) return shared;
    }
  }
  if (strategy.control().scheduler_ended()) {
    throw Error(
        Code::failed_precondition,
        "cannot create a ClusterCoordinator: the earlier one of this strategy has ended, which told every "
        "worker to end; keep one as long as the strategy");
  }
  auto made = std::make_shared<coordinator::Coordinator>(strategy);
  const std::lock_guard lock(mutex);
  std::erase_if(coordinators, [](const auto& entry) { return entry.second.expired(); });
  coordinators[&strategy] = made;
  return made;
}

}  // namespace

ClusterCoordinator::ClusterCoordinator(ParameterServerStrategy& strategy)
    : implementation_(coordinator_of(strategy.implementation())) {}
ClusterCoordinator::~ClusterCoordinator() = default;

std::shared_ptr<const coordinator::Result> ClusterCoordinator::add(std::uint32_t function,
                                                                   detail::PackedArguments arguments) {
  return implementation_->schedule(function, std::move(arguments));
}

std::shared_ptr<const coordinator::Result> ClusterCoordinator::add_with(const ScheduleOptions& options,
                                                                        std::uint32_t function,
                                                                        detail::PackedArguments arguments) {
  auto extras = std::make_unique<coordinator::ClosureExtras>();
  extras->priority = options.priority;
  if (options.affinity) {
    extras->affinity = *options.affinity;
    if (*options.affinity < 0) implementation_->check_worker(*options.affinity);
  }
  if (options.deadline) extras->deadline = deadline_after(*options.deadline);
  return implementation_->schedule(function, std::move(arguments), std::move(extras));
}

std::shared_ptr<const coordinator::Result> ClusterCoordinator::add_for(int worker, std::uint32_t function,
                                                                       detail::PackedArguments arguments) {
  return implementation_->schedule_on(worker, function, std::move(arguments));
}

CoordinatorStatistics ClusterCoordinator::statistics() const { return implementation_->queue().statistics(); }
std::vector<int> ClusterCoordinator::worker_indices() const { return implementation_->worker_indices(); }
bool ClusterCoordinator::has_lost(int worker) const { return implementation_->has_lost(worker); }

void ClusterCoordinator::join() { implementation_->queue().join(std::nullopt); }
bool ClusterCoordinator::join(std::chrono::milliseconds timeout) {
  return implementation_->queue().join(timeout);
}
bool ClusterCoordinator::done() { return implementation_->queue().done(); }
detail::ResourceHandle ClusterCoordinator::add_resource(std::uint32_t function,
                                                        detail::PackedArguments arguments) {
  return implementation_->strategy().worker_resources().add(function, std::move(arguments));
}
void ClusterCoordinator::scalar(const std::string& name, double value, std::int64_t step) {
  implementation_->metrics().scalar(name, value, step);
}
void ClusterCoordinator::record_step(std::int64_t step) { implementation_->record_step(step); }
int ClusterCoordinator::workers() const { return implementation_->workers(); }

}  // namespace capstan
