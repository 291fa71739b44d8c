// worker_server.cpp -- taking closures, executing them, sending what they return.
#include "coordinator/worker/worker_server.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/deadline.hpp"
#include "base/exit_codes.hpp"
#include "base/log.hpp"
#include "base/stacks.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/detail/remote_function.hpp"
#include "capstan/detail/replica_context.hpp"
#include "cluster/membership/failure_detector.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "coordinator/scheduling/function_name.hpp"
#include "io/events/trace_file.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace coordinator {
namespace {

thread_local WorkerServer* current_worker = nullptr;

/// Set by SIGTERM, of a worker that came late. Looked at in each round, so twice a second at least.
std::atomic<bool> told_to_leave{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// A second one ends the process.
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

/// How long a worker looks for its next closure before it sleeps: to wake it takes longer than to send it
/// one.
constexpr ControlLoop::Looks kWorkerPolls{std::chrono::seconds(1), std::chrono::microseconds(200)};
/// Answers are sent when there are so many bytes, or the first one has waited so long, or nothing is left to
/// do.
constexpr std::size_t kAnswerBytes = transport::kPieceBytes / 2;
constexpr std::chrono::microseconds kAnswerWaits{200};
/// How often a worker that was started again asks to be taken in: the coordinator, or the ps when it finds
/// none.
constexpr std::chrono::milliseconds kAsksAgain{200};
/// A function that still runs when nobody wants its result gets so long: at the end of the job, and when this
/// worker counts as dead and could begin anew. Only a process that has an agent may be ended under it.
constexpr std::chrono::seconds kGraceAtTheEnd{2};
constexpr std::chrono::seconds kGraceOfTheFenced{1};
constexpr const char* kFencedText =
    "this worker counts as dead, because there was no sign of life of it (--heartbeat-timeout): what it was "
    "doing runs elsewhere, and it ends";

}  // namespace

WorkerServer::WorkerServer(std::shared_ptr<cluster::Runtime> runtime)
    : runtime_(std::move(runtime)),
      context_(runtime_),
      fenced_why_(kFencedText),
      watch_(*runtime_),
      beat_every_(runtime_->in_process() ? std::chrono::milliseconds(0)
                                         : cluster::FailureDetector::period_of(
                                               runtime_->settings().duration("heartbeat-timeout"))),
      coordinator_detector_(
          cluster::FailureDetector::of_one_that_answers(beat_every_, runtime_->wait_timeout())),
      has_agent_(!runtime_->in_process() && cluster::Heartbeat::watched()),
      loop_(
          runtime_->control(), [this] { return round(); }, kWorkerPolls) {}

void WorkerServer::run() {
  log::set_rank_tag(runtime_->log_tag());
  strategy::Context::set_current(&context_);
  current_worker = this;
  if (runtime_->came_late()) leave_on_sigterm();
  listen();
  loop_.start([tag = runtime_->log_tag()] { log::set_rank_tag(tag); });
  if (runtime_->started_again()) await_ps();
  while (true) {
    begin_anew();
    free_resources();
    auto task = next_task();
    if (!task) {
      loop_.wait(
          [&] {
            const std::lock_guard lock(mutex_);
            return ended() || anew_ || !tasks_.empty() || !to_free_.empty();
          },
          std::nullopt);
      const std::lock_guard lock(mutex_);
      if (ended()) break;
      continue;
    }
    execute(*task);
  }
  loop_.stop();
  if (has_agent_) cluster::Heartbeat::rest();
  current_worker = nullptr;
  strategy::Context::set_current(nullptr);
  resources_.clear();
  if (fenced_) throw Error(Code::aborted, fenced_why_);
  if (!lost_.empty()) throw Error(Code::unavailable, lost_ + "; this worker ends");
}

void WorkerServer::listen() {
  transport::Fabric& fabric = runtime_->control();
  fabric.on_message(transport::kRunClosures, [this](const transport::Message& message) { take(message); });
  fabric.on_message(transport::kFreeResources, [this](const transport::Message& message) {
    const auto header = transport::read_header<protocol::FreeHeader>(message);
    if (!header || header->incarnation != watch_.incarnation()) return;
    const auto ids = from_bytes<std::vector<std::uint64_t>>(message.payload);
    const std::lock_guard lock(mutex_);
    to_free_.insert(to_free_.end(), ids.begin(), ids.end());
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
    const std::lock_guard lock(mutex_);
    over_ = true;
    end_by_ = std::chrono::steady_clock::now() + kGraceAtTheEnd;
  });
  fabric.on_message(transport::kHeartbeat, [this](const transport::Message& message) {
    coordinator_detector_.heard(message.from, std::chrono::steady_clock::now());
  });
  fabric.on_message(transport::kFenced, [this](const transport::Message& message) {
    const std::lock_guard lock(mutex_);
    fenced_ = true;
    if (!message.payload.empty()) {
      const auto* text = reinterpret_cast<const char*>(message.payload.data());
      fenced_why_.assign(text, message.payload.size());
    }
    end_by_ = std::chrono::steady_clock::now() + kGraceOfTheFenced;
  });
  fabric.on_message(transport::kCoordinatorReturned, [this](const transport::Message& message) {
    watch_.hear(message);
    if (!watch_.news()) return;
    const std::lock_guard lock(mutex_);
    tasks_.clear();  // of the earlier one; the new one's may follow at once
    news_.clear();
    revoked_.clear();
    to_give_back_.clear();
    to_free_.clear();
    failures_ = 0;
  });
  fabric.on_failure([this](transport::Peer& peer) {
    if (runtime_->member(peer.rank()).role != Role::coordinator) return;
    const std::lock_guard lock(mutex_);
    if (!over_) watch_.lose(peer);
    tasks_.clear();  // it will have them run again
    revoked_.clear();
  });
  const auto connect = [this] {
    coordinator_ = &runtime_->control_peer(runtime_->member(Role::coordinator, 0));
  };
  if (!runtime_->came_late()) connect();
  if (runtime_->started_again()) come_in();
  if (runtime_->came_late()) connect();
  if (!runtime_->started_again() || runtime_->came_late()) coordinator_->send(transport::kHello, {});
  fabric.on_message(transport::kHello, [](const transport::Message&) {});
}

/// Looking until the coordinator has answered keeps the time short in which this process's death can end it:
/// see await_ps. One that came late waits until the coordinator has connected to it.
void WorkerServer::come_in() {
  transport::Fabric& fabric = runtime_->control();
  bool heard = false;
  fabric.on_message(transport::kHello,
                    [this, &heard](const transport::Message& message) { heard |= watch_.meet(message); });
  const bool late = runtime_->came_late();
  auto next = std::chrono::steady_clock::now();
  const auto ask = [&] {
    const auto self = to_bytes(runtime_->self());
    if (!watch_.until()) {
      coordinator_->send(transport::kJoin, {}, self);
      return;
    }
    // A coordinator that was killed as well comes back without knowing this process; the ps know where it is.
    bool any = false;
    for (int ps = 0; ps < runtime_->count(Role::ps); ++ps) {
      transport::Peer& peer = runtime_->control_peer(runtime_->member(Role::ps, ps));
      peer.send(transport::kJoin, {}, self);
      any |= !peer.failed();
    }
    if (!any) watch_.reach_none();
  };
  const auto answered = [&] {
    take_up_coordinator();
    // Repeated, since a coordinator that is about to begin drops it.
    if (const auto now = std::chrono::steady_clock::now(); !late && now >= next) {
      next = now + kAsksAgain;
      ask();
    }
    return heard || ended() || anew_;
  };
  if (!transport::progress_until(fabric, transport::deadline_in(runtime_->wait_timeout()), answered)) {
    throw Error(
        Code::deadline_exceeded,
        fmt::format("waited {} ms for {} to take this worker in, which {}", runtime_->wait_timeout().count(),
                    runtime_->member(Role::coordinator, 0).name(), late ? "came late" : "was started again"));
  }
}

/// Each ps connects to a worker that was started again, and only then the worker to the ps. UCX 1.13 ends a
/// process whose answer to another one's wish to connect has not left when that one dies; a ps that has
/// wished itself answers nothing.
void WorkerServer::await_ps() {
  transport::Fabric& data = runtime_->data();
  std::set<int> open;
  for (int ps = 0; ps < runtime_->count(Role::ps); ++ps) open.insert(runtime_->member(Role::ps, ps).rank);
  data.on_message(transport::kHello,
                  [&open](const transport::Message& message) { open.erase(message.from); });
  const auto known = [&] {
    const std::lock_guard lock(mutex_);
    return open.empty() || ended();
  };
  if (!transport::progress_until(data, transport::deadline_in(runtime_->wait_timeout()), known)) {
    log::warn("waited {} ms for {} to connect", runtime_->wait_timeout().count(),
              runtime_->name_of(*open.begin()));
  }
  data.on_message(transport::kHello, [](const transport::Message&) {});
}

ControlLoop::Round WorkerServer::round() {
  const bool received = runtime_->control().progress() != 0;
  take_up_coordinator();
  for (const protocol::ReportHeader& header : std::exchange(to_report_, {})) report(header);
  const auto rest = beat_or_end();
  const auto to_give_back = std::exchange(to_give_back_, {});
  std::vector<std::byte> answers;
  std::vector<std::uint64_t> revoked;
  std::shared_ptr<CancellationRequest> cancelled;
  bool answer_due = false;
  {
    const std::lock_guard lock(mutex_);
    for (const protocol::GiveBackHeader& which : to_give_back) {
      revoke(which);
      if (!is_at_one_of(which)) continue;
      cancellation_->request();
      cancelled = cancellation_;
    }
    answers.swap(answers_);
    revoked.swap(revoked_);
    if (over_ || fenced_ || anew_) answers.clear();  // nobody wants them
    answer_due = std::exchange(answer_due_, false);
  }
  if (cancelled) cancelled->run_callbacks();
  if (answer_due) watch_.answer();
  if (!answers.empty()) coordinator_->send(transport::kClosuresDone, {}, answers);
  // Behind the error that is the reason, so that the coordinator cancels them. Not inside progress(): a
  // worker that joins late may be asked before it is connected.
  if (!to_give_back.empty() || !revoked.empty()) {
    std::sort(revoked.begin(), revoked.end(), std::greater<>());
    coordinator_->send(transport::kGivenBack, {}, to_bytes(revoked));
  }
  if (told_to_leave && runtime_->came_late() && !std::exchange(has_asked_to_leave_, true)) {
    coordinator_->send(transport::kLeave, {});
  }
  return {received || !answers.empty(), rest};
}

/// Not inside progress().
void WorkerServer::take_up_coordinator() {
  if (!watch_.news()) {
    if (const std::string& verdict = watch_.verdict(); !verdict.empty()) {
      const std::lock_guard lock(mutex_);
      lose_coordinator(verdict);
    }
    return;
  }
  const cluster::CoordinatorBack back = watch_.take_up();
  coordinator_detector_.forget(coordinator_->rank());  // it has not sent anything yet
  // For the process that its agent starts when this one dies.
  if (runtime_->persistent_memory())
    cluster::PersistentRecord(runtime_->persistent_memory()).write(to_bytes(back));
  const std::lock_guard lock(mutex_);
  anew_ = true;
}

/// By the thread that runs closures, between two of them: objects of the earlier coordinator go, and the new
/// one may go by what this worker has pushed.
void WorkerServer::begin_anew() {
  {
    const std::lock_guard lock(mutex_);
    if (!anew_) return;
  }
  resources_.clear();
  recipes_.clear();
  try {
    context_.client().flush();  // what a function that threw had pushed
  } catch (const Error& error) {
    log::warn("what the last function had pushed may be lost: {}", error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    anew_ = false;
    answer_due_ = true;
    answers_.clear();
    failures_ = 0;
  }
  loop_.nudge();
}

/// Whichever thread drives the loop, also while a function computes for long. The time until it has to be
/// called again.
std::chrono::milliseconds WorkerServer::beat_or_end() {
  std::chrono::milliseconds rest = ControlLoop::Round{}.rest;
  const auto now = std::chrono::steady_clock::now();
  const auto no_later_than = [&](std::chrono::steady_clock::time_point at) {
    rest = std::min(rest, std::chrono::ceil<std::chrono::milliseconds>(at - now));
  };
  if (beat_every_.count() > 0) {
    if (now >= next_beat_) {
      coordinator_->send(transport::kHeartbeat, {});
      cluster::Heartbeat::beat(2 * runtime_->settings().duration("heartbeat-timeout"));
      next_beat_ = now + beat_every_;
    }
    no_later_than(next_beat_);
  }
  if (const auto until = watch_.until(); until && *until > now) no_later_than(*until);
  const std::lock_guard lock(mutex_);
  // It answers from its first answer on; its end, or the end of the way to it, may come without a word.
  (void)coordinator_detector_.look(now);
  if (coordinator_detector_.suspects(coordinator_->rank()) && !over_ && !watch_.until())
    lose_coordinator(coordinator_->name() + " is gone");
  if (!ended() || !(has_agent_ || runtime_->came_late())) return rest;
  if (now < end_by_) {
    no_later_than(end_by_);
    return rest;
  }
  if (fenced_) {
    log::error("{}", fenced_why_);
  } else {
    log::warn("{}; this worker ends in the middle of a function that does not",
              over_ ? "the job is over" : lost_.c_str());
  }
  std::_Exit(fenced_ ? kExitFenced : over_ ? 0 : kExitLostRank);
}

/// A function that waits for a ps, which has lost the coordinator too, would hold this worker up.
void WorkerServer::lose_coordinator(const std::string& verdict) {
  if (!lost_.empty()) return;
  lost_ = verdict;
  end_by_ = std::chrono::steady_clock::now() + kGraceAtTheEnd;
}

/// Handler of kRunClosures.
void WorkerServer::take(const transport::Message& message) {
  const auto header = transport::read_header<protocol::BatchHeader>(message);
  if (!header || header->incarnation != watch_.incarnation()) return;  // of a coordinator that was killed
  const auto batch =
      std::make_shared<const std::vector<std::byte>>(message.payload.begin(), message.payload.end());
  Reader in(*batch);
  const std::lock_guard lock(mutex_);
  const bool before_an_error = header->failures < failures_;
  for (std::uint64_t i = 0; i < header->closures; ++i) {
    const auto run = read<protocol::RunHeader>(in);
    const transport::Bytes packed = in.view(run.argument_bytes);
    if (before_an_error && run.stays == 0) {
      revoked_.push_back(run.id);
      continue;
    }
    Task& task = tasks_.emplace_back(Task{run, packed, batch});
    if (run.timed == 0) continue;
    Reader arguments(task.arguments);
    const std::chrono::nanoseconds left(read<std::int64_t>(arguments));
    task.begin_by = deadline_after(left);
    task.arguments = arguments.view(arguments.left());
  }
  if (header->announcement_bytes > 0) news_.push_back({in.view(header->announcement_bytes), batch});
}

void WorkerServer::revoke(const protocol::GiveBackHeader& which) {
  std::uint64_t count = 0;
  for (auto task = tasks_.end(); task != tasks_.begin();) {
    --task;
    // By the clock of the coordinator its deadline has passed.
    if (task->header.id == which.cancel) task->begin_by = std::chrono::steady_clock::time_point::min();
    if (task->header.stays != 0 || (count >= which.most && task->header.id >= which.before)) continue;
    ++count;
    revoked_.push_back(task->header.id);
    task = tasks_.erase(task);
  }
}

bool WorkerServer::is_at_one_of(const protocol::GiveBackHeader& which) const {
  if (!running_ || running_->stays != 0 || running_->completes != 0) return false;
  return running_->id < which.before || running_->id == which.cancel;
}

/// What this worker has moved so far, for the coordinator's figures. Not inside progress(), as the answer to
/// kGiveBack.
void WorkerServer::report(const protocol::ReportHeader& header) {
  const cluster::TrafficMetrics figures = runtime_->traffic().figures();
  protocol::WorkerReport report{packed(figures.pull), packed(figures.push), packed(figures.flush), 0,
                                cluster::use_of_this_process()};
  {
    const std::lock_guard lock(mutex_);
    report.held = tasks_.size();
  }
  coordinator_->send(transport::kReport, transport::as_bytes(header), to_bytes(report));
}

std::optional<WorkerServer::Task> WorkerServer::next_task() {
  const std::lock_guard lock(mutex_);
  if (ended() || tasks_.empty()) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  running_ = task.header;
  return task;
}

/// What the closures that have come may name; in order with them, or before.
void WorkerServer::learn_news() {
  std::deque<PendingAnnouncement> news;
  {
    const std::lock_guard lock(mutex_);
    news.swap(news_);
  }
  for (const PendingAnnouncement& item : news) {
    auto announcement = from_bytes<protocol::Announcement>(item.bytes);
    for (auto& variable : announcement.variables) context_.add(std::move(variable));
    for (auto& recipe : announcement.resources) recipes_.insert_or_assign(recipe.id, std::move(recipe));
  }
}

/// By the thread that runs closures, and has made the objects. Those that no closure used have a recipe
/// alone.
void WorkerServer::free_resources() {
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    if (to_free_.empty()) return;
    ids.swap(to_free_);
  }
  learn_news();  // of closures that were given back
  for (const std::uint64_t id : ids) {
    recipes_.erase(id);
    resources_.erase(id);
  }
}

/// What a closure had pushed to a ps that died is lost in part; the ps knows which, so all of it runs again.
std::vector<std::byte> WorkerServer::run_until_no_ps_dies(const detail::RemoteFunction& function,
                                                          const Task& task) {
  client::Client& client = context_.client();
  for (bool again = task.header.again != 0;; again = true) {
    try {
      Reader in(task.arguments);
      client.begin({task.header.id, again});
      std::vector<std::byte> result;
      {
        const CancellationScope scope(cancellation_.get());
        result = function.run(in);
      }
      client.flush();
      return result;
    } catch (const Error& error) {
      if (error.code() != Code::unavailable || !client.ps_restarted()) throw;
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
  try {
    learn_news();
    if (task.begin_by && begin > *task.begin_by) {
      throw Error(Code::deadline_exceeded, "a function had not begun at its deadline");
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
    failed(Code::unknown, "the function threw something that is no std::exception");
  }
  context_.client().begin({});
  const auto end = Clock::now();
  const protocol::DoneHeader header{task.header.id, result.size(),
                                    static_cast<std::uint64_t>(std::chrono::nanoseconds(end - begin).count()),
                                    static_cast<std::uint64_t>(code)};
  if (io::TraceFile* trace = runtime_->trace(); trace != nullptr) {
    trace->span("function", short_name(detail::registered_function(task.header.function).name), begin, end,
                {{"id", static_cast<std::int64_t>(task.header.id)},
                 {"again", task.header.again},
                 {"code", static_cast<std::int64_t>(code)}});
  }
  bool send_now = false;
  {
    const std::lock_guard lock(mutex_);
    if (answers_.empty()) first_answer_ = begin;
    const auto head = transport::as_bytes(header);
    answers_.insert(answers_.end(), head.begin(), head.end());
    answers_.insert(answers_.end(), result.begin(), result.end());
    running_.reset();
    if (cancellation_->requested()) cancellation_ = std::make_shared<CancellationRequest>();
    const bool cancels_others = code != Code::ok && task.header.stays == 0 && !anew_;
    if (cancels_others) {
      ++failures_;
      revoke({tasks_.size(), 0});
    }
    // With nothing left to do, waiting for more sends them.
    send_now = !tasks_.empty() &&
               (cancels_others || answers_.size() >= kAnswerBytes || end - first_answer_ >= kAnswerWaits);
  }
  if (send_now) loop_.nudge();
}

std::shared_ptr<void> WorkerServer::resource(std::uint64_t id) {
  if (const auto made = resources_.find(id); made != resources_.end()) return made->second;
  const auto recipe = recipes_.find(id);
  if (recipe == recipes_.end()) {
    throw Error(
        Code::failed_precondition,
        fmt::format("per-worker object {} is not on {}: every handle on the coordinator was destroyed; "
                    "keep one as long as closures use the object",
                    id, runtime_->self().name()));
  }
  Reader in(recipe->second.arguments);
  auto made = detail::registered_function(recipe->second.function).make(in);
  recipes_.erase(id);  // its arguments may be as large as the object
  resources_.emplace(id, made);
  return made;
}

}  // namespace coordinator

std::shared_ptr<void> detail::worker_resource(const ResourceHandle& handle) {
  return coordinator::worker_of_this_thread("a per-worker value").resource(handle.id());
}

int current_worker_index() {
  if (in_replica_context()) {  // on a thread of its own, which shares the worker's context
    const cluster::Member& self = strategy::Context::current().client().runtime().self();
    if (self.role == Role::worker) return self.index;
  }
  return coordinator::worker_of_this_thread("current_worker_index()").index();
}

}  // namespace capstan
