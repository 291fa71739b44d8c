// ps_session.cpp -- connects, detects the death of a ps, and waits for its next process.
#include "client/channel/ps_session.hpp"

#include <thread>

#include "base/backoff.hpp"
#include "capstan/cancellation.hpp"
#include "capstan/serialize.hpp"
#include "client/channel/path_report.hpp"
#include "transport/bytes.hpp"

namespace capstan::client {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a wait polls before it sleeps. A busy ps answers within this time.
constexpr std::chrono::microseconds kPollAlone{500};
constexpr std::chrono::microseconds kPollOnASharedCore{500};
/// Polls of mapped memory between two polls of the network, which take system calls.
constexpr unsigned kPollsBetweenProgress = 64;

}  // namespace

PsSession::PsSession(cluster::Runtime& runtime, transport::RpcClient& rpc, int ps)
    : runtime_(runtime), rpc_(rpc), ps_(ps), rank_(runtime.self().rank) {}

void PsSession::connect_now() {
  take_restarted();
  if (process_.board) drop_memory(0);  // a previous reconnect failed halfway
  peer_ = &runtime_.data_peer(runtime_.member(Role::ps, ps_));
  while (true) {
    try {
      begin(ask_to_connect());
      break;
    } catch (const Error& error) {
      if (error.code() != Code::unavailable) throw;
      await_restart();
    }
  }
  report_path(runtime_, runtime_.member(Role::ps, ps_), process_.path, *peer_);
  connected_ = true;
}

/// Directs the peer to the announced process, if any.
bool PsSession::take_restarted() {
  if (!restarted_) return false;
  const cluster::Member process = *std::exchange(restarted_, std::nullopt);
  runtime_.reconnect_ps_on_data(process);
  return true;
}

protocol::ConnectReply PsSession::ask_to_connect() {
  return from_bytes<protocol::ConnectReply>(rpc_.call(*peer_, transport::kConnect, {}, timeout(), "connect"));
}

void PsSession::begin(const protocol::ConnectReply& reply) {
  if (reply.incarnation != process_.incarnation) read_locations();
  const std::string& wanted = runtime_.settings().text("window");
  const bool same_host = runtime_.member(peer_->rank()).host == runtime_.self().host;
  const protocol::BoardLayout layout(static_cast<std::uint64_t>(runtime_.table().capacity()));
  process_.board = std::make_unique<PsBoard>(
      peer_->open_window(reply.board,
                         same_host || wanted == "mapped" ? window_path(wanted) : transport::WindowPath::rma),
      layout, rank_, timeout());
  process_.liveness_word = process_.board->liveness_word();
  process_.applied = acknowledged_ = reply.applied;
  process_.ring_bytes = reply.ring_bytes;
  process_.doorbell = reply.doorbell;
  process_.sink = reinterpret_cast<protocol::PushSink*>(reply.sink);
  if (process_.board->mapped()) {
    process_.path = process_.sink != nullptr ? Path::in_process : Path::mapped;
  } else {
    process_.path = path_without_mapping(wanted, peer_->has_hardware_rma());
  }
  // Atomics of an adapter and of a CPU are not coherent with each other, and UCX 1.22 does not emulate
  // atomics on endpoints with error handling. So the ps adds, unless all ranks share its host and the
  // board is mapped. It also does so if it has a replica, which must see every change.
  process_.counts_by_call =
      reply.counts_by_call != 0 || !runtime_.membership().single_host() || !process_.board->mapped();
  // Set last: if begin() fails, the next reply still counts as the reply of a new incarnation.
  process_.incarnation = reply.incarnation;
}

void PsSession::read_locations() {
  decltype(locations_) locations;
  for (const auto& now : from_bytes<std::vector<protocol::CurrentLocation>>(
           rpc_.call(*peer_, transport::kCurrentLocations, {}, timeout(), "list shard locations"))) {
    locations.emplace(std::pair(now.variable, now.shard), now.location);
  }
  locations_ = std::move(locations);
}

const protocol::ShardLocation& PsSession::current_location(std::uint32_t variable, std::uint32_t shard,
                                                           const protocol::ShardLocation& original) const {
  const auto now = locations_.find({variable, shard});
  return now == locations_.end() ? original : now->second;
}

transport::Window& PsSession::window(std::uint64_t region) {
  if (const auto known = windows_.find(region); known != windows_.end()) return *known->second;
  const auto key = from_bytes<transport::RegionKey>(
      call(transport::kRegionKey, transport::as_bytes(region), "export a region"));
  auto window = peer_->open_window(
      key, process_.board->mapped() ? transport::WindowPath::mapped : transport::WindowPath::rma);
  return *windows_.emplace(region, std::move(window)).first->second;
}

void PsSession::note_restart(std::uint32_t incarnation, cluster::Member process) {
  const std::pair announced(incarnation, process.pid);
  if (incarnation < announced_.first || announced == announced_) return;
  announced_ = announced;
  // The previous process may be unreachable, which the transport does not detect.
  runtime_.drop_data_peer(process.rank);
  restarted_ = std::move(process);
}

/// When this returns, the peer is the new process.
void PsSession::await_restart() {
  gpu_memory_.release();
  const auto timeout = runtime_.ps_timeout();
  const bool may_return = runtime_.ps_may_be_replaced() && !runtime_.in_process();
  const auto decided = [this] { return restarted_ || runtime_.ps_given_up() || cancelled(); };
  if (may_return) transport::progress_until(fabric(), transport::deadline_in(timeout), decided);
  if (!may_return || !restarted_) {
    if (may_return) throw_if_cancelled();
    std::string message = peer_->name() + " is dead";
    if (may_return && runtime_.ps_given_up()) message += ", and no process has replaced it";
    if (may_return && !runtime_.ps_given_up())
      message += ", and has not recovered within " + std::to_string(timeout.count()) + " ms (--ps-wait)";
    throw Error(Code::unavailable, message);
  }
  ++restarts_;
  take_restarted();
}

bool PsSession::reconnect() {
  bool memory_survived = process_.path == Path::mapped;
  bool moved = false;
  while (true) {
    await_restart();
    try {
      const protocol::ConnectReply reply = ask_to_connect();
      moved = reply.incarnation != process_.incarnation;
      if (memory_survived && !moved) {
        // The memory and all entries in the ring are intact.
        process_.doorbell = reply.doorbell;
        return true;
      }
      memory_survived = false;
      drop_memory(moved ? acknowledged_ : reply.applied);
      begin(reply);
      break;
    } catch (const Error& error) {
      if (error.code() == Code::unavailable) continue;  // the new process has died too
      if (!memory_survived) {
        drop_memory(acknowledged_);
        connected_ = false;
      }
      throw;
    }
  }
  if (moved) report_path(runtime_, runtime_.member(peer_->rank()), process_.path, *peer_);
  return false;
}

void PsSession::drop_memory(std::uint64_t applied) {
  ++relocations_;
  applied_at_loss_.push_back(applied == protocol::kFenced ? 0 : applied);
  windows_.clear();
}

Error PsSession::lost_pushes() const {
  return Error(
      Code::unavailable,
      peer_->name() +
          " was restarted without its memory; pushes that it had not applied are lost; push them again");
}

Error PsSession::fenced() const {
  return Error(Code::aborted, "this rank is fenced: " + peer_->name() +
                                  " rejects its pushes because the rank counts as dead");
}

std::vector<std::byte> PsSession::call(std::uint16_t type, transport::Bytes request, const char* what) {
  while (true) {
    if (alive()) {
      transport::RpcOutcome outcome = rpc_.outcome(rpc_.start(*peer_, type, request), timeout(), what);
      if (!outcome.error) return std::move(outcome.answer);
      if (!outcome.unanswered() || alive()) throw *outcome.error;
    }
    if (!reconnect()) throw lost_pushes();
  }
}

bool PsSession::wait_until(const std::function<bool()>& done) {
  Backoff backoff(kPollAlone, kPollOnASharedCore);
  Clock::time_point deadline{};
  for (unsigned polls = 1; !done(); ++polls) {
    if (process_.liveness_word == nullptr || polls % kPollsBetweenProgress == 0) fabric().progress();
    if (!alive()) {
      if (!reconnect()) throw lost_pushes();
      deadline = {};
      backoff.reset();
    }
    if (backoff.pause()) continue;
    if (deadline == Clock::time_point{}) deadline = Clock::now() + timeout();
    if (Clock::now() >= deadline) return false;
    if (process_.liveness_word == nullptr) {
      fabric().wait(std::chrono::milliseconds(1));
    } else {
      fabric().progress();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return true;
}

void PsSession::wait_for(const char* what, const std::function<bool()>& done) {
  if (wait_until(done)) return;
  throw Error(Code::deadline_exceeded,
              "waited " + std::to_string(timeout().count()) + " ms for " + peer_->name() + " to " + what);
}

}  // namespace capstan::client
