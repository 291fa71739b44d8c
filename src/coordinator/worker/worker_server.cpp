// worker_server.cpp -- receives closures, executes them, sends their answers.
#include "coordinator/worker/worker_server.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/exit_codes.hpp"
#include "base/log.hpp"
#include "base/stacks.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/detail/remote_function.hpp"
#include "capstan/detail/replica_context.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "coordinator/scheduling/function_name.hpp"
#include "io/events/trace_file.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace coordinator {
namespace {

thread_local WorkerServer* current_worker = nullptr;

/// Set when a worker that joined late receives SIGTERM. Checked in each round, at least twice a second.
std::atomic<bool> told_to_leave{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Makes the first SIGTERM request that this worker leaves; a second one ends the process.
void leave_on_sigterm() {
  struct sigaction action {};
  action.sa_handler = [](int) { told_to_leave = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  (void)sigaction(SIGTERM, &action, nullptr);
}

WorkerServer& worker_of_this_thread(const char* what) {
  if (current_worker == nullptr) {
    throw Error(Code::failed_precondition, std::string(what) + " is for functions that run on a worker");
  }
  return *current_worker;
}

/// How long a worker polls for its next closure before it sleeps. Long, since waking a thread takes longer
/// than sending it a closure.
constexpr ControlLoop::Polls kWorkerPolls{std::chrono::seconds(1), std::chrono::microseconds(200)};
/// Interval at which a restarted worker requests admission from the coordinator or, while that is dead, from
/// the ps.
constexpr std::chrono::milliseconds kAsksAgain{200};
/// How long a closure may still run when its result is no longer needed: at the end of the job, and on a
/// fenced worker, whose restart it delays. A process without an agent, unless it joined late, waits longer.
constexpr std::chrono::seconds kGraceAtTheEnd{2};
constexpr std::chrono::seconds kGraceOfTheFenced{1};
constexpr const char* kFencedText =
    "this worker was fenced because it sent no heartbeat (--heartbeat-timeout): its closures run elsewhere, "
    "and it ends";

}  // namespace

WorkerServer::WorkerServer(std::shared_ptr<cluster::Runtime> runtime)
    : runtime_(std::move(runtime)),
      context_(runtime_),
      has_agent_(!runtime_->in_process() && cluster::Heartbeat::watched()),
      watch_(*runtime_),
      heartbeat_(*runtime_),
      loop_(
          runtime_->control(), [this] { return round(); }, kWorkerPolls) {}

void WorkerServer::run() {
  log::set_rank_tag(runtime_->log_tag());
  strategy::Context::set_current(&context_);
  current_worker = this;
  if (runtime_->joins_late()) leave_on_sigterm();
  listen();
  loop_.start([tag = runtime_->log_tag()] { log::set_rank_tag(tag); });
  if (runtime_->joins_after_start()) await_ps();
  while (!ended()) {
    if (tasks_.outdated()) discard_previous_job();
    free_objects();
    if (const auto task = tasks_.next()) {
      execute(*task);
    } else {
      loop_.wait([this] { return ended() || tasks_.has_work(); }, std::nullopt);
    }
  }
  loop_.stop();
  if (has_agent_) cluster::Heartbeat::pause();
  current_worker = nullptr;
  strategy::Context::set_current(nullptr);
  objects_.clear();
  if (end_.reason == End::Reason::fenced) throw Error(Code::aborted, end_.text);
  if (end_.reason == End::Reason::coordinator_lost) {
    throw Error(Code::unavailable, end_.text + "; this worker ends");
  }
}

void WorkerServer::end(End::Reason reason, std::string text, std::chrono::milliseconds grace) {
  const std::lock_guard lock(mutex_);
  if (end_.reason != End::Reason::none && reason != End::Reason::fenced) return;
  end_ = {reason, std::move(text), std::chrono::steady_clock::now() + grace};
}

WorkerServer::End::Reason WorkerServer::ending() const {
  const std::lock_guard lock(mutex_);
  return end_.reason;
}

void WorkerServer::listen() {
  transport::Fabric& fabric = runtime_->control();
  fabric.on_message(transport::kRunClosures, [this](const transport::Message& message) {
    const auto header = transport::read_header<protocol::BatchHeader>(message);
    if (!header || header->incarnation != watch_.incarnation()) return;  // sent by a previous coordinator
    tasks_.add(*header, message);
  });
  fabric.on_message(transport::kFreeResources, [this](const transport::Message& message) {
    const auto header = transport::read_header<protocol::FreeHeader>(message);
    if (!header || header->incarnation != watch_.incarnation()) return;
    tasks_.free_objects(from_bytes<std::vector<std::uint64_t>>(message.payload));
  });
  fabric.on_message(transport::kGiveBack, [this](const transport::Message& message) {
    const auto header = transport::read_header<protocol::GiveBackHeader>(message);
    if (header) to_give_back_.push_back(*header);
  });
  fabric.on_message(transport::kReport, [this](const transport::Message& message) {
    const auto request = transport::read_header<protocol::ReportRequest>(message);
    if (!request) return;
    if (request->last != 0 && runtime_->trace() != nullptr) runtime_->trace()->flush();
    to_report_.push_back(protocol::answer_to(*request));
  });
  fabric.on_message(transport::kDumpStacks, [](const transport::Message&) { write_stacks(); });
  fabric.on_message(transport::kShutdown, [this](const transport::Message&) {
    end(End::Reason::job_over, "the job is over", kGraceAtTheEnd);
  });
  fabric.on_message(transport::kHeartbeat, [this](const transport::Message& message) {
    heartbeat_.heard(message.from, std::chrono::steady_clock::now());
  });
  fabric.on_message(transport::kFenced, [this](const transport::Message& message) {
    const auto* text = reinterpret_cast<const char*>(message.payload.data());
    end(End::Reason::fenced,
        message.payload.empty() ? kFencedText : std::string(text, message.payload.size()), kGraceOfTheFenced);
  });
  fabric.on_message(transport::kCoordinatorReturned, [this](const transport::Message& message) {
    watch_.on_announcement(message);
    if (watch_.has_announcement()) tasks_.replace_coordinator();
  });
  fabric.on_failure([this](transport::Peer& peer) {
    if (runtime_->member(peer.rank()).role != Role::coordinator) return;
    if (ending() != End::Reason::job_over) watch_.on_connection_lost(peer);
    tasks_.drop_queued();
  });
  const auto connect = [this] {
    coordinator_ = &runtime_->control_peer(runtime_->member(Role::coordinator, 0));
  };
  if (!runtime_->joins_late()) connect();
  if (runtime_->joins_after_start()) join_job();
  if (runtime_->joins_late()) connect();
  if (!runtime_->joins_after_start() || runtime_->joins_late()) coordinator_->send(transport::kHello, {});
  fabric.on_message(transport::kHello, [](const transport::Message&) {});
}

/// Asks the coordinator to admit this worker, and waits until it does. The wait keeps the time short in which
/// the death of this process can end the coordinator: see await_ps. A worker that joins late waits until the
/// coordinator has connected to it.
void WorkerServer::join_job() {
  transport::Fabric& fabric = runtime_->control();
  bool heard = false;
  fabric.on_message(transport::kHello, [this, &heard](const transport::Message& message) {
    heard |= watch_.on_admission(message);
  });
  const bool late = runtime_->joins_late();
  auto next = std::chrono::steady_clock::now();
  const auto ask = [&] {
    const auto self = to_bytes(runtime_->self());
    if (!watch_.deadline()) {
      coordinator_->send(transport::kJoin, {}, self);
      return;
    }
    // A coordinator that is restarted does not know this process; the ps tell it the address.
    bool any = false;
    for (int ps = 0; ps < runtime_->count(Role::ps); ++ps) {
      transport::Peer& peer = runtime_->control_peer(runtime_->member(Role::ps, ps));
      peer.send(transport::kJoin, {}, self);
      any |= !peer.failed();
    }
    if (!any) watch_.on_isolated();
  };
  const auto answered = [&] {
    follow_coordinator();
    // Repeated, since a coordinator that is starting drops the request.
    if (const auto now = std::chrono::steady_clock::now(); !late && now >= next) {
      next = now + kAsksAgain;
      ask();
    }
    return heard || ended() || tasks_.outdated();
  };
  if (!transport::progress_until(fabric, transport::deadline_in(runtime_->wait_timeout()), answered)) {
    throw Error(
        Code::deadline_exceeded,
        fmt::format("waited {} ms for {} to admit this worker, which {}", runtime_->wait_timeout().count(),
                    runtime_->member(Role::coordinator, 0).name(), late ? "joins late" : "was restarted"));
  }
}

/// Waits until each ps has connected to this restarted worker; only then the worker connects to the ps. UCX
/// 1.13 aborts a process whose reply to a connection request is unsent when the requester dies; a ps that has
/// requested the connection itself sends no reply.
void WorkerServer::await_ps() {
  transport::Fabric& data = runtime_->data();
  std::set<int> open;
  for (int ps = 0; ps < runtime_->count(Role::ps); ++ps) open.insert(runtime_->member(Role::ps, ps).rank);
  data.on_message(transport::kHello,
                  [&open](const transport::Message& message) { open.erase(message.from); });
  const auto known = [&] { return open.empty() || ended(); };
  if (!transport::progress_until(data, transport::deadline_in(runtime_->wait_timeout()), known)) {
    log::warn("waited {} ms for {} to connect", runtime_->wait_timeout().count(),
              runtime_->name_of(*open.begin()));
  }
  data.on_message(transport::kHello, [](const transport::Message&) {});
}

ControlLoop::Round WorkerServer::round() {
  const bool received = runtime_->control().progress() != 0;
  follow_coordinator();
  for (const protocol::ReportHeader& header : std::exchange(to_report_, {})) report(header);
  const auto rest = send_heartbeat_or_exit();
  const auto to_give_back = std::exchange(to_give_back_, {});
  for (const protocol::GiveBackHeader& request : to_give_back) {
    if (const auto cancelled = tasks_.revoke(request)) cancelled->run_callbacks();
  }
  std::vector<std::byte> answers = tasks_.take_answers();
  const std::vector<std::uint64_t> revoked = tasks_.take_revoked();
  const End::Reason reason = ending();
  if (reason == End::Reason::job_over || reason == End::Reason::fenced) answers.clear();
  if (answer_due_.exchange(false)) watch_.acknowledge();
  if (!answers.empty()) coordinator_->send(transport::kClosuresDone, {}, answers);
  // Sent after the error that revoked closures, so that the coordinator cancels them. Not sent inside
  // progress(): a worker that joins late may receive the request before it is connected.
  if (!to_give_back.empty() || !revoked.empty()) {
    coordinator_->send(transport::kGivenBack, {}, to_bytes(revoked));
  }
  if (told_to_leave && runtime_->joins_late() && !std::exchange(has_asked_to_leave_, true)) {
    coordinator_->send(transport::kLeave, {});
  }
  return {received || !answers.empty(), rest};
}

/// Connects to a restarted coordinator; ends this worker if none was restarted in time. Not called inside
/// progress().
void WorkerServer::follow_coordinator() {
  if (!watch_.has_announcement()) {
    const std::string& verdict = watch_.stop_reason();
    if (!verdict.empty()) end(End::Reason::coordinator_lost, verdict, kGraceAtTheEnd);
    return;
  }
  const cluster::CoordinatorReturned back = watch_.reconnect();
  heartbeat_.forget(coordinator_->rank());
  // Read by the process that the agent starts if this one dies.
  if (runtime_->persistent_memory())
    cluster::PersistentRecord(runtime_->persistent_memory()).write(to_bytes(back));
}

/// Called by the thread that runs closures, between two of them: drops the objects of the previous
/// coordinator. The new one may rely on what this worker has pushed.
void WorkerServer::discard_previous_job() {
  objects_.clear();
  try {
    context_.use_client()->flush();  // pushes of a closure that threw
  } catch (const Error& error) {
    log::warn("pushes of the last closure may be lost: {}", error.what());
  }
  tasks_.resume();
  answer_due_ = true;
  loop_.nudge();
}

/// Called by the thread that drives the loop, also during a long closure. Returns the time until the next
/// call is due.
std::chrono::milliseconds WorkerServer::send_heartbeat_or_exit() {
  std::chrono::milliseconds rest = ControlLoop::Round{}.rest;
  const auto now = std::chrono::steady_clock::now();
  const auto no_later_than = [&](std::chrono::steady_clock::time_point at) {
    if (at < now + rest) rest = std::chrono::ceil<std::chrono::milliseconds>(at - now);
  };
  no_later_than(heartbeat_.send(*coordinator_, now));
  if (const auto until = watch_.deadline(); until && *until > now) no_later_than(*until);
  // A coordinator may end, or the network to it may fail, without a message.
  if (heartbeat_.suspects(coordinator_->rank(), now) && !watch_.deadline()) {
    end(End::Reason::coordinator_lost, coordinator_->name() + " is dead", kGraceAtTheEnd);
  }
  const std::lock_guard lock(mutex_);
  if (end_.reason == End::Reason::none || !(has_agent_ || runtime_->joins_late())) return rest;
  if (now < end_.by) {
    no_later_than(end_.by);
    return rest;
  }
  if (end_.reason == End::Reason::fenced) {
    log::error("{}", end_.text);
    std::_Exit(kExitFenced);
  }
  log::warn("{}; this worker exits during a closure that does not end", end_.text);
  std::_Exit(end_.reason == End::Reason::job_over ? 0 : kExitLostRank);
}

/// Sends this worker's traffic so far, for the job's metrics. Not called inside progress().
void WorkerServer::report(const protocol::ReportHeader& header) {
  const cluster::TrafficMetrics traffic = runtime_->traffic().metrics();
  protocol::WorkerReport report{packed(traffic.pull), packed(traffic.push), packed(traffic.flush),
                                traffic.keys,         tasks_.size(),        cluster::use_of_this_process()};
  coordinator_->send(transport::kReport, transport::as_bytes(header), to_bytes(report));
}

/// Adds the variables and recipes that the closures received so far may name.
void WorkerServer::learn_announcements() {
  for (protocol::Announcement& announcement : tasks_.take_announcements()) {
    for (auto& variable : announcement.variables) context_.add(std::move(variable));
    for (auto& recipe : announcement.resources) objects_.add(std::move(recipe));
  }
}

/// Called by the thread that runs closures, which has created the objects.
void WorkerServer::free_objects() {
  const std::vector<std::uint64_t> ids = tasks_.take_freed();
  if (ids.empty()) return;
  learn_announcements();  // includes those that came with revoked closures
  objects_.erase(ids);
}

/// Runs the closure, and runs it again each time a ps dies meanwhile and is restarted. Such a ps may lose
/// pushes; repeated pushes that were not lost are ignored.
std::vector<std::byte> WorkerServer::run_until_no_ps_dies(const detail::RemoteFunction& function,
                                                          const Task& task) {
  for (bool again = task.header.again != 0;; again = true) {
    try {
      Reader in(task.arguments);
      context_.use_client()->begin({task.header.id, again});
      std::vector<std::byte> result;
      {
        const CancellationScope scope(task.cancellation.get());
        result = function.run(in);
      }
      context_.use_client()->flush();
      return result;
    } catch (const Error& error) {
      if (error.code() != Code::unavailable || !context_.use_client()->ps_restarted()) throw;
    }
  }
}

void WorkerServer::execute(const Task& task) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::vector<std::byte> result;
  Code code = Code::ok;
  const auto failed = [&](Code with, std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    code = with;
    result.assign(bytes.begin(), bytes.end());
  };
  client::CallTrace& calls = context_.client().trace();
  calls.begin(runtime_->trace(), begin);
  try {
    learn_announcements();
    if (task.begin_by && begin > *task.begin_by) {
      throw Error(Code::deadline_exceeded, "the deadline of a function expired before it started");
    }
    const auto& function = detail::registered_function(task.header.function);
    result = run_until_no_ps_dies(function, task);
  } catch (const Error& error) {
    failed(error.code(), error.what());
  } catch (const std::bad_alloc& error) {
    failed(Code::resource_exhausted,
           fmt::format("the function had no memory left on {}: {}", runtime_->self().name(), error.what()));
  } catch (const std::exception& error) {
    failed(Code::unknown, error.what());
  } catch (...) {
    failed(Code::unknown, "the function threw an object that is not a std::exception");
  }
  context_.use_client()->begin({});
  const auto end = Clock::now();
  calls.end(end);
  if (io::TraceFile* trace = runtime_->trace(); trace != nullptr) {
    trace->span("function", short_name(detail::registered_function(task.header.function).name), begin, end,
                {{"id", static_cast<std::int64_t>(task.header.id)},
                 {"again", task.header.again},
                 {"code", static_cast<std::int64_t>(code)}});
  }
  // Answers are sent without a nudge when the queue is empty, since the thread then drives the loop.
  if (tasks_.finish(task, code, result, begin, end)) loop_.nudge();
}

}  // namespace coordinator

std::shared_ptr<void> detail::worker_resource(const ResourceHandle& handle) {
  return coordinator::worker_of_this_thread("a per-worker value").resource(handle.id());
}

int current_worker_index() {
  if (in_replica_context()) {  // replicas may have their own threads, which share the worker's context
    const cluster::Member& self = strategy::Context::current().runtime().self();
    if (self.role == Role::worker) return self.index;
  }
  return coordinator::worker_of_this_thread("current_worker_index()").index();
}

}  // namespace capstan
