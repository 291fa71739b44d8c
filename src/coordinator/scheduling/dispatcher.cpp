// dispatcher.cpp -- sends batches of closures, to the least loaded worker first.
#include "coordinator/scheduling/dispatcher.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "capstan/serialize.hpp"
#include "io/events/trace_file.hpp"
#include "protocol/closure_messages.hpp"
#include "protocol/push_format.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

/// Target for the work that a worker holds, in nanoseconds: enough for the time in which more closures are
/// sent to the worker, and short compared with a training step.
constexpr double kFill = 300e3;
constexpr std::size_t kMaxInFlight = 512;
constexpr std::size_t kMinInFlight = 2;
/// Overhead of a closure in nanoseconds, so that empty ones count.
constexpr double kOverhead = 500;
/// A batch is sent when it reaches this size. It is half of a message, so that the closure that exceeds the
/// size usually still fits.
constexpr std::size_t kBatchBytes = transport::kPieceBytes / 2;
/// A worker that has not answered for this long executes a long function; closures behind it may be moved.
constexpr std::chrono::milliseconds kRecallAfter{1};
constexpr std::chrono::milliseconds kLongestWait{500};

template <class T>
void append(std::vector<std::byte>& out, const T& value) {
  const auto bytes = transport::as_bytes(value);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

void Dispatcher::add(transport::Peer& peer) {
  Worker& worker = workers_.emplace_back();
  worker.peer = &peer;
  worker.index = count_++;
  index_of_rank_[peer.rank()] = worker.index;
  touch(worker);
  if (start_delay_.count() == 0 || !alive(worker)) return;
  auto delay = start_delay_ * worker.index;
  if (start_delay_max_.count() > 0) delay = std::min(delay, start_delay_max_);
  worker.start = Clock::now() + delay;
  starting_ = true;
}

void Dispatcher::replace(int index, transport::Peer& peer) {
  Worker& worker = workers_.at(static_cast<std::size_t>(index));
  CAPSTAN_ASSERT(worker.peer == &peer || !alive(worker));
  remove_place(worker);
  index_of_rank_.erase(worker.peer->rank());
  worker = Worker{};
  worker.peer = &peer;
  worker.index = index;
  index_of_rank_[peer.rank()] = index;
  touch(worker);
}

transport::Peer* Dispatcher::worker(int index) const {
  const auto at = static_cast<std::size_t>(index);
  return at < workers_.size() ? workers_[at].peer : nullptr;
}

void Dispatcher::send_to_all(std::uint16_t type) {
  for (const Worker& worker : workers_) {
    if (alive(worker)) worker.peer->send(type, {});
  }
}

/// Not called while a batch is being filled, which may announce an object that is freed here.
void Dispatcher::free_resources() {
  const std::vector<std::uint64_t> freed = strategy_.worker_resources().take_freed();
  if (freed.empty()) return;
  const protocol::FreeHeader header{strategy_.runtime()->incarnation()};
  const std::vector<std::byte> ids = to_bytes(freed);
  for (const Worker& worker : workers_) {
    if (alive(worker)) worker.peer->send(transport::kFreeResources, transport::as_bytes(header), ids);
  }
}

Dispatcher::Worker* Dispatcher::of_rank(int rank) {
  const auto found = index_of_rank_.find(rank);
  return found == index_of_rank_.end() ? nullptr : &workers_[static_cast<std::size_t>(found->second)];
}

void Dispatcher::leave(int rank) {
  Worker* worker = of_rank(rank);
  if (worker == nullptr || !alive(*worker)) return;
  worker->leaves = true;
  leavers_.push_back(worker->index);
  touch(*worker);
  const protocol::GiveBackHeader all{worker->running.size(), 0, 0};
  worker->peer->send(transport::kGiveBack, transport::as_bytes(all));
}

transport::Peer* Dispatcher::drained_worker() const {
  for (const int index : leavers_) {
    const Worker& worker = workers_[static_cast<std::size_t>(index)];
    if (worker.leaves && alive(worker) && worker.running.empty()) return worker.peer;
  }
  return nullptr;
}

std::uint64_t Dispatcher::ended(const transport::Peer& peer) const {
  const auto found = std::find_if(workers_.begin(), workers_.end(),
                                  [&](const Worker& worker) { return worker.peer == &peer; });
  return found == workers_.end() ? 0 : found->ended;
}

double Dispatcher::estimate(std::uint32_t function) {
  if (function >= times_.size()) times_.resize(function + 1);
  return times_[function] == 0 ? kFill : kOverhead + times_[function];
}

/// Asymmetric moving average: rises quickly and decays slowly, since a function that is sometimes long blocks
/// the closures behind it.
void Dispatcher::update_estimate(std::uint32_t function, double nanoseconds) {
  double& time = times_.at(function);
  const double weight = time == 0 ? 1 : nanoseconds > time ? 0.5 : 1.0 / 16;
  time = std::max(1.0, time + weight * (nanoseconds - time));
}

/// Returns true if the worker's start is delayed, which keeps workers from accessing the same shards at once.
bool Dispatcher::waits_for_start(const Worker& worker) const {
  return starting_ && Clock::now() < worker.start;
}

/// Finds the workers whose start is due, and the time of the next start.
void Dispatcher::start_workers() {
  if (!starting_) return;
  const auto now = Clock::now();
  starting_ = false;
  next_start_ = Clock::time_point::max();
  for (Worker& worker : workers_) {
    if (now >= worker.start) {
      touch(worker);
    } else if (alive(worker)) {
      starting_ = true;
      next_start_ = std::min(next_start_, worker.start);
    }
  }
}

/// A worker that is not known to the ps yet, or is silent, has capacity and gets no closures.
bool Dispatcher::has_capacity(const Worker& worker) const {
  const std::size_t running = worker.running.size();
  if (worker.leaves || members_.is_lost(worker.peer->rank())) return false;
  if (inflight_limit_ > 0) return running < inflight_limit_;
  return running < kMinInFlight || (worker.fills && running < kMaxInFlight && worker.load < kFill);
}

void Dispatcher::touch(Worker& worker) {
  if (!std::exchange(worker.touched, true)) touched_.push_back(worker.index);
}

void Dispatcher::remove_place(Worker& worker) {
  if (worker.place) places_.erase(*worker.place);
  worker.place.reset();
  if (std::exchange(worker.needs_next, false)) --need_next_;
}

/// Sends the batches of the touched workers, and moves these workers to their places.
void Dispatcher::settle() {
  for (const int index : touched_) {
    Worker& worker = workers_[static_cast<std::size_t>(index)];
    send_batch(worker);
    worker.touched = false;
    // A worker is refilled once its load is below half the limit, so that batches are large.
    worker.fills = worker.load < kFill / 2;
    remove_place(worker);
    if (!has_capacity(worker) || waits_for_start(worker)) continue;
    worker.place = worker.key();
    places_.insert(*worker.place);
    worker.needs_next = alive(worker) && worker.running.size() < kMinInFlight;
    if (worker.needs_next) ++need_next_;
  }
  touched_.clear();
}

/// Sends closures that are for one worker; they precede closures for any worker.
bool Dispatcher::dispatch_for_one() {
  bool any = false;
  for (const int index : queue_.workers_with_closures()) {
    Worker& worker = workers_.at(static_cast<std::size_t>(index));
    while (alive(worker) && has_capacity(worker) && !waits_for_start(worker)) {
      auto closure = queue_.take_for(index);
      if (!closure) break;
      assign(worker, std::move(*closure));
      any = true;
    }
  }
  return any;
}

/// Compares for heaps, whose first element is the greatest.
bool Dispatcher::is_later(const Worker* a, const Worker* b) { return b->key() < a->key(); }

/// Returns the worker that gets the next closure, on top of heap_; null if there is none. Moves workers from
/// places_ to heap_, where a new load costs less.
Dispatcher::Worker* Dispatcher::least_loaded() {
  while (!places_.empty() && (heap_.empty() || *places_.begin() < heap_.front()->key())) {
    Worker& worker = workers_[static_cast<std::size_t>(places_.begin()->index)];
    touch(worker);
    remove_place(worker);
    if (!alive(worker) || !has_capacity(worker)) continue;
    heap_.push_back(&worker);
    std::push_heap(heap_.begin(), heap_.end(), is_later);
  }
  return heap_.empty() ? nullptr : heap_.front();
}

bool Dispatcher::dispatch_for_any() {
  bool any = false;
  heap_.clear();
  while (Worker* worker = least_loaded()) {
    auto closure = queue_.take(worker->index, false);
    if (!closure) {
      if (!queue_.any_preferred()) break;
      std::pop_heap(heap_.begin(), heap_.end(), is_later);  // the closures left prefer other workers
      heap_.pop_back();
      continue;
    }
    any = true;
    if (Worker* producer = producer_of(*closure, worker->load); producer != nullptr && producer != worker) {
      assign(*producer, std::move(*closure));
      if (!has_capacity(*producer)) std::erase(heap_, producer);
      std::make_heap(heap_.begin(), heap_.end(), is_later);
      continue;
    }
    std::pop_heap(heap_.begin(), heap_.end(), is_later);
    assign(*worker, std::move(*closure));
    if (has_capacity(*worker)) {
      std::push_heap(heap_.begin(), heap_.end(), is_later);
    } else {
      heap_.pop_back();
    }
  }
  return any;
}

bool Dispatcher::dispatch() {
  queue_.set_workers_busy(false);
  start_workers();
  settle();
  bool any = dispatch_for_one();
  any = dispatch_for_any() || any;
  settle();
  if (queue_.any_preferred() && assign_to_idle()) {
    any = true;
    settle();
  }
  queue_.set_workers_busy(all_busy());
  revoke();
  recall_for_idle();
  return any;
}

/// Returns true if there are workers that may get closures, and each has a next one.
bool Dispatcher::all_busy() const {
  return need_next_ == 0 && inflight_limit_ != 1 && members_.alive(Role::worker) > 0;
}

/// Returns the first idle worker whose place is after `place`; null if there is none.
Dispatcher::Worker* Dispatcher::idle_after(const std::optional<Place>& place) {
  for (auto next = place ? places_.upper_bound(*place) : places_.begin(); next != places_.end(); ++next) {
    if (next->load > 0) return nullptr;
    Worker& worker = workers_[static_cast<std::size_t>(next->index)];
    if (alive(worker)) return &worker;
  }
  return nullptr;
}

/// Sends closures whose preferred workers are busy to idle workers.
bool Dispatcher::assign_to_idle() {
  bool any = false;
  for (Worker* worker = idle_after({}); worker != nullptr; worker = idle_after(worker->place)) {
    auto closure = queue_.take(worker->index, true);
    if (!closure) break;
    assign(*worker, std::move(*closure));
    any = true;
  }
  return any;
}

/// Returns the worker that produced an argument of the closure, if its load is not above `least_load`; or
/// null.
Dispatcher::Worker* Dispatcher::producer_of(const Closure& closure, double least_load) {
  if (!closure.has_extras || closure.extras()->affinity != kAnyWorker) return nullptr;
  const int producer = closure.input_producer();
  if (producer < 0 || producer >= workers()) return nullptr;
  Worker& worker = workers_[static_cast<std::size_t>(producer)];
  const bool receives = alive(worker) && has_capacity(worker) && !waits_for_start(worker);
  return receives && worker.load <= least_load ? &worker : nullptr;
}

/// Appends a closure with extras: the header, the time until its deadline if it has one, and the arguments
/// with the results of other closures among them. If the conversion of an argument fails, fails the closure
/// and returns false.
bool Dispatcher::append_extras(std::vector<std::byte>& out, protocol::RunHeader header,
                               const Closure& closure) {
  const ClosureExtras& extras = *closure.extras();
  std::vector<std::byte> complete;
  if (!extras.inputs.empty()) {
    try {
      complete = closure.complete_arguments();
    } catch (const std::exception& error) {
      const auto* known = dynamic_cast<const Error*>(&error);
      queue_.fail(closure, known != nullptr ? known->code() : Code::invalid_argument, error.what());
      return false;
    }
  }
  const std::vector<std::byte>& arguments = extras.inputs.empty() ? closure.arguments : complete;
  header.argument_bytes = arguments.size();
  header.uncancellable = extras.uncancellable ? 1 : 0;
  if (extras.deadline) {
    const std::int64_t left = std::chrono::nanoseconds(*extras.deadline - Clock::now()).count();
    header.argument_bytes += sizeof left;
    header.timed = 1;
    append(out, header);
    append(out, left);
  } else {
    append(out, header);
  }
  out.insert(out.end(), arguments.begin(), arguments.end());
  return true;
}

void Dispatcher::assign(Worker& worker, Closure closure) {
  const protocol::RunHeader header{
      closure.id, closure.arguments.size(), closure.function,
      static_cast<std::uint8_t>(closure.worker == kAnyWorker ? 0 : 1),
      // The previous process of a restarted coordinator may have started any closure.
      static_cast<std::uint8_t>(closure.again || strategy_.runtime()->incarnation() > 0 ? 1 : 0)};
  std::vector<std::byte> with_extras;
  if (closure.has_extras && !append_extras(with_extras, header, closure)) return;
  if (closure.has_extras) {
    worker.batch.insert(worker.batch.end(), with_extras.begin(), with_extras.end());
  } else {
    append(worker.batch, header);
    worker.batch.insert(worker.batch.end(), closure.arguments.begin(), closure.arguments.end());
  }
  ++worker.batched;
  if (worker.running.empty()) worker.heard = Clock::now();
  const double time = estimate(closure.function);
  worker.load += time;
  worker.running.push_back({std::move(closure), time, false});
  touch(worker);
  if (worker.batch.size() >= kBatchBytes) send_batch(worker);
}

/// Appends variables and recipes that are new to the worker; returns the number of bytes. Called when the
/// batch is complete: all objects that its closures may name exist by then.
std::uint64_t Dispatcher::announce(Worker& worker) {
  protocol::Announcement announcement;
  for (const auto& variable : strategy_.variables().all(worker.known_variables)) {
    announcement.variables.push_back(variable->descriptor);
  }
  for (const auto& recipe : strategy_.worker_resources().after(worker.known_resources)) {
    announcement.resources.push_back(*recipe);
  }
  if (announcement.variables.empty() && announcement.resources.empty()) return 0;
  worker.known_variables += announcement.variables.size();
  if (!announcement.resources.empty()) worker.known_resources = announcement.resources.back().id;
  const std::vector<std::byte> bytes = to_bytes(announcement);
  worker.batch.insert(worker.batch.end(), bytes.begin(), bytes.end());
  return bytes.size();
}

void Dispatcher::send_batch(Worker& worker) {
  if (worker.batched == 0) return;
  const protocol::BatchHeader header{worker.batched, announce(worker), strategy_.runtime()->incarnation(),
                                     worker.failures};
  if (io::TraceFile* trace = strategy_.runtime()->trace(); trace != nullptr) {
    trace->instant("dispatch", "dispatch",
                   {{"worker", worker.index},
                    {"functions", static_cast<std::int64_t>(worker.batched)},
                    {"bytes", static_cast<std::int64_t>(worker.batch.size())}});
  }
  worker.peer->send(transport::kRunClosures, transport::as_bytes(header), worker.batch);
  worker.batch.clear();
  if (worker.batch.capacity() > 4 * kBatchBytes) worker.batch.shrink_to_fit();
  worker.batched = 0;
}

/// Removes the closure from the worker's list; returns nullopt if it was removed before.
std::optional<Dispatcher::Running> Dispatcher::stop_running(Worker& worker, std::uint64_t id) {
  const auto found = std::find_if(worker.running.begin(), worker.running.end(),
                                  [id](const Running& running) { return running.closure.id == id; });
  if (found == worker.running.end()) return std::nullopt;
  Running running = std::move(*found);
  worker.running.erase(found);
  worker.load = worker.running.empty() ? 0 : worker.load - running.estimate;
  return running;
}

void Dispatcher::take_results(const transport::Message& message) {
  Worker* worker = from(message);
  if (worker == nullptr) return;
  touch(*worker);
  worker->heard = Clock::now();
  worker->answered = ++answers_;
  worker->recall_sent = false;
  Reader in(message.payload);
  while (in.left() > 0) {
    const auto header = read<protocol::DoneHeader>(in);
    const transport::Bytes result = in.view(header.result_bytes);
    if (header.code != 0 && header.id < protocol::kForOneWorker) ++worker->failures;
    const auto running = stop_running(*worker, header.id);
    if (!running) continue;
    ++worker->ended;
    update_estimate(running->closure.function, static_cast<double>(header.nanoseconds));
    if (header.code == 0) {
      queue_.finish(running->closure, {result.begin(), result.end()}, {worker->index, header.nanoseconds});
    } else {
      queue_.fail(running->closure, static_cast<Code>(header.code),
                  std::string(reinterpret_cast<const char*>(result.data()), result.size()),
                  {worker->index, header.nanoseconds});
    }
  }
}

/// After an error, cancels closures that workers have not started. Messages arrive in order, so the request
/// reaches a worker after all closures that it cancels.
void Dispatcher::revoke() {
  const std::uint64_t before = queue_.revoked_before();
  if (before == revoked_before_) return;
  revoked_before_ = before;
  for (const Worker& worker : workers_) {
    const bool holds_any = std::any_of(worker.running.begin(), worker.running.end(),
                                       [&](const Running& running) { return running.closure.id < before; });
    const protocol::GiveBackHeader all{0, before, 0};
    if (alive(worker) && holds_any) worker.peer->send(transport::kGiveBack, transport::as_bytes(all));
  }
}

/// Requests closures that a busy worker has not started, half of them at a time, if another worker is idle.
void Dispatcher::recall_for_idle() {
  using std::chrono::milliseconds;
  rest_ = kLongestWait;
  if (starting_) rest_ = std::min(rest_, std::chrono::ceil<milliseconds>(next_start_ - Clock::now()));
  if (!queue_.empty() || idle_after({}) == nullptr) return;
  const auto now = Clock::now();
  if (now < next_recall_) {
    rest_ = std::min(rest_, kRecallAfter);
    return;
  }
  next_recall_ = now + kRecallAfter;  // limits the time that vain searches take with many workers
  Worker* busiest = nullptr;
  for (Worker& worker : workers_) {
    if (!alive(worker) || worker.leaves || worker.recall_sent || worker.running.size() < 2) continue;
    if (busiest == nullptr || worker.running.size() > busiest->running.size()) busiest = &worker;
  }
  if (busiest == nullptr) return;
  if (now < busiest->heard + kRecallAfter) {
    rest_ = std::min(rest_, kRecallAfter);
    return;
  }
  next_recall_ = {};
  const protocol::GiveBackHeader header{busiest->running.size() / 2, 0, 0};
  busiest->peer->send(transport::kGiveBack, transport::as_bytes(header));
  busiest->recall_sent = true;
  // The running closure takes longer than estimated.
  busiest->running.front().estimate += kFill;
  busiest->load += kFill;
  touch(*busiest);
}

void Dispatcher::take_back(const transport::Message& message) {
  Worker* worker = from(message);
  if (worker == nullptr) return;
  touch(*worker);
  const auto ids = from_bytes<std::vector<std::uint64_t>>(message.payload);
  if (!ids.empty()) worker->recall_sent = false;
  for (const std::uint64_t id : ids) {  // the last one first
    if (auto running = stop_running(*worker, id)) queue_.put_back(std::move(running->closure));
  }
}

std::size_t Dispatcher::take_from(const transport::Peer& peer, std::set<int> ps, Clock::time_point deadline) {
  Worker* worker = of_rank(peer.rank());
  if (worker == nullptr) return 0;
  CAPSTAN_ASSERT(!alive(*worker));
  queue_.fail_all_for(worker->index);
  Unapplied unapplied{peer.rank(), std::move(ps), deadline, {}};
  for (Running& running : worker->running) {
    running.closure.again = true;
    if (running.closure.worker == kAnyWorker) {
      unapplied.closures.push_back(std::move(running.closure));
    } else {
      queue_.put_back(std::move(running.closure));
    }
  }
  worker->running.clear();
  worker->load = 0;
  remove_place(*worker);
  const std::size_t closures = unapplied.closures.size();
  unapplied_.push_back(std::move(unapplied));
  requeue_applied();
  return closures;
}

void Dispatcher::cancel_expired() {
  for (Worker& worker : workers_) {
    if (!alive(worker)) continue;
    for (Running& running : worker.running) {
      const ClosureExtras* extras = running.closure.extras();
      if (extras == nullptr || !extras->expired || std::exchange(running.cancelled, true)) continue;
      const protocol::GiveBackHeader header{0, 0, running.closure.id};
      worker.peer->send(transport::kGiveBack, transport::as_bytes(header));
    }
  }
}

/// Checks only the first closure of each worker: the others have not started.
Dispatcher::Overrun Dispatcher::overrun() const {
  Overrun longest{nullptr, 0, Clock::time_point::max()};
  for (const Worker& worker : workers_) {
    if (!alive(worker) || worker.running.empty()) continue;
    const Closure& first = worker.running.front().closure;
    if (!first.has_extras || !first.extras()->expired || *first.extras()->deadline >= longest.deadline)
      continue;
    longest = {worker.peer, first.function, *first.extras()->deadline};
  }
  return longest;
}

std::vector<Dispatcher::BusyWorker> Dispatcher::busy_workers() const {
  std::vector<BusyWorker> all;
  for (const Worker& worker : workers_) {
    if (!alive(worker) || worker.running.empty()) continue;
    all.push_back(
        {worker.index, worker.running.size(), worker.running.front().closure.function, worker.heard});
  }
  return all;
}

std::vector<Dispatcher::WorkerStatus> Dispatcher::worker_statuses() const {
  std::vector<WorkerStatus> all;
  for (const Worker& worker : workers_)
    all.push_back({worker.index, worker.peer->rank(), alive(worker), worker.ended, worker.running.size()});
  return all;
}

void Dispatcher::note_applied(int rank, int ps) {
  for (Unapplied& unapplied : unapplied_) {
    if (unapplied.rank == rank) unapplied.open.erase(ps);
  }
  requeue_applied();
}

std::optional<Dispatcher::Overdue> Dispatcher::overdue() const {
  if (unapplied_.empty()) return std::nullopt;
  const auto now = Clock::now();
  for (const Unapplied& unapplied : unapplied_) {
    if (now >= unapplied.deadline) return Overdue{unapplied.rank, *unapplied.open.begin()};
  }
  return std::nullopt;
}

/// Queues the closures of lost workers whose pushes every ps has applied.
void Dispatcher::requeue_applied() {
  std::erase_if(unapplied_, [this](Unapplied& unapplied) {
    if (!unapplied.open.empty()) return false;
    for (auto closure = unapplied.closures.rbegin(); closure != unapplied.closures.rend(); ++closure) {
      queue_.put_back(std::move(*closure));
    }
    return true;
  });
}

}  // namespace capstan::coordinator
