// ps_server.cpp -- main loop of a ps: requests, messages, polling and sleeping.
#include "ps/server/ps_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "base/backoff.hpp"
#include "base/log.hpp"
#include "base/stacks.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/roles/gpu_assignment.hpp"
#include "io/events/trace_file.hpp"
#include "protocol/replica_format.hpp"
#include "ps/durability/store_restore.hpp"
#include "transport/bytes.hpp"
#include "transport/memory/liveness_word.hpp"
#include "transport/memory/word.hpp"

namespace capstan::ps {
namespace {

/// Time for which an idle ps polls before it sleeps. A wake-up costs the pusher a message and about 50 us of
/// latency. On a core of its own, a ps polls for the duration of a short step. On a core that it shares with
/// a worker, it polls for the cost of a few wake-ups, and yields between polls.
constexpr std::chrono::microseconds kPollOnOwnCore{1000};
constexpr std::chrono::microseconds kPollOnSharedCore{200};
/// Turns of the loop per poll of an idle fabric: polling a ring is a load, polling the fabric a system call.
constexpr unsigned kTurnsPerFabricPoll = 8;

}  // namespace

PsServer::PsServer(std::shared_ptr<cluster::Runtime> runtime,
                   std::optional<protocol::FailoverRequest> failover)
    : runtime_(std::move(runtime)),
      fabric_(runtime_->control()),
      persistent_(runtime_->persistent_memory() == nullptr || runtime_->ps_have_replicas()
                      ? nullptr
                      : std::make_unique<PersistentState>(runtime_->persistent_memory(), fabric_, max_ranks(),
                                                          entry_bytes(*runtime_),
                                                          ledger_capacity(*runtime_))),
      regions_(persistent_ || runtime_->in_process() ? nullptr : std::make_unique<SharedRegions>(fabric_)),
      board_(allocate_board(), max_ranks()),
      store_(
          fabric_, runtime_->settings().bytes("heap-slab-bytes"), runtime_->self().index,
          [this](std::uint32_t group, std::uint64_t steps) { board_.set_steps(group, steps); },
          [this](std::uint32_t counter, std::uint64_t delta) { count(counter, delta); }, persistent_.get(),
          regions_.get(), ledger_capacity(*runtime_),
          static_cast<int>(runtime_->settings().integer("ps-threads"))),
      replication_(*runtime_, [this](const std::function<bool()>& done) { receive_until(done); }),
      rings_(board_.data(), max_ranks(), store_.heap(), store_, persistent_.get(), replication_.stream()),
      inbox_(
          store_,
          [this](int rank, std::uint64_t bytes) {
            const protocol::PushApplied applied{bytes, incarnation_};
            client(rank).send(transport::kPushApplied, transport::as_bytes(applied));
          },
          persistent_.get(), replication_.stream()),
      // Clients send reads from their data fabrics and expect the rows there.
      rows_(store_, [this](int rank) -> transport::Peer& { return client(rank); }),
      saver_(
          store_, runtime_->self().index, runtime_->settings().bytes("checkpoint-bandwidth"),
          [this] { fabric_.wake(); },
          [this](const protocol::ShardsSaved& saved, transport::Bytes payload) {
            if (io::TraceFile* trace = runtime_->trace(); trace != nullptr && saved.fast == 0) {
              trace->span("checkpoint", "write part", save_began_, io::TraceFile::Clock::now(),
                          {{"save", static_cast<std::int64_t>(saved.save)}, {"code", saved.code}});
            }
            runtime_->control_peer(runtime_->member(Role::coordinator, 0))
                .send(transport::kShardsSaved, transport::as_bytes(saved), payload);
          }),
      rpc_(
          fabric_, [this](int rank) -> transport::Peer& { return client(rank); },
          [this](int rank) { return !is_lost(rank); }),
      follower_(
          *runtime_, store_,
          [this](std::uint16_t type, int from, transport::Bytes request) { replay(type, from, request); }),
      coordinator_(*runtime_),
      heartbeat_(*runtime_, incarnation_) {
  store_.device()->configure([this] { return cluster::assigned_gpus(*runtime_, 1).front(); },
                             runtime_->settings().flag("gpu-deterministic"));
  serve_requests();
  serve_fabric();
  replication_.serve();
  if (failover) {
    fail_over(*failover);
  } else if (persistent_ && persistent_->has_predecessor()) {
    recover();
  }
}

/// Records members, dead ranks and the role in persistent state, as if this process had been the ps from the
/// start.
void PsServer::fail_over(const protocol::FailoverRequest& failover) {
  incarnation_ = failover.incarnation;
  switch (failover.source) {
    case protocol::FailoverRequest::Source::checkpoint:
      for (const protocol::CreateShard& shard : failover.shards)
        (void)store_.create(shard, /*restored=*/true);
      if (!failover.shards.empty()) restore_checkpoint(store_, failover.directory);
      for (const auto& [counter, value] : failover.counters) board_.fetch_add(counter, value);
      break;
    case protocol::FailoverRequest::Source::replica:
      follower_.fail_over();
      for (int rank = 0; rank < runtime_->table().capacity(); ++rank) rings_.reset(rank);
      break;
  }
  for (const cluster::Member& member : failover.members) add_member(to_bytes(member));
  for (const std::int32_t rank : failover.dead) mark_dead({rank, 0});
  if (!persistent_) return;
  // Recorded because the agent's table of members still has the address of the first coordinator process.
  persistent_->append(PersistentState::Record::coordinator, to_bytes(runtime_->member(Role::coordinator, 0)));
  // Last, as it declares the shards complete.
  const AssumedRole role{failover.rank, failover.index, failover.incarnation};
  persistent_->append(PersistentState::Record::assumed_role, transport::as_bytes(role));
}

std::unique_ptr<transport::Region> PsServer::allocate_board() {
  const std::uint64_t bytes = protocol::BoardLayout(max_ranks()).bytes();
  if (persistent_) return persistent_->board(bytes);
  return regions_ ? regions_->allocate(bytes) : fabric_.allocate(bytes);
}

void PsServer::recover() {
  for (const PersistentState::Item& item : persistent_->items()) {
    if (item.record == PersistentState::Record::dead) {
      const auto rank = static_cast<int>(from_bytes<std::uint64_t>(item.bytes));
      runtime_->membership().set(rank, cluster::MemberState::dead,
                                 "the coordinator declared it dead to the previous process of this ps");
    }
    if (item.record == PersistentState::Record::member)
      runtime_->membership().add(from_bytes<cluster::Member>(item.bytes), cluster::MemberState::alive);
    if (item.record == PersistentState::Record::coordinator)
      runtime_->coordinator_returned(from_bytes<cluster::Member>(item.bytes));
  }
  if (const auto role = persistent_->assumed_role()) incarnation_ = role->incarnation;
  undo_uncommitted_count();
  store_.recover();
  rings_.recover();
  inbox_.recover([this](int rank) { return rings_.applied(rank).has_value(); });
}

/// Sends kPsReturned to every reachable rank, whose connection to the previous process has failed.
void PsServer::announce_restart() {
  const cluster::Member& self = runtime_->self();
  const auto bytes = to_bytes(self);
  const cluster::Member& coordinator = runtime_->member(Role::coordinator, 0);
  const protocol::PsReturned returned{incarnation_};
  runtime_->control_peer(coordinator).send(transport::kPsReturned, transport::as_bytes(returned), bytes);
  client(coordinator.rank).send(transport::kPsReturned, transport::as_bytes(returned), bytes);
  for (const int rank : runtime_->membership().worker_ranks()) {
    if (is_lost(rank)) continue;
    client(rank).send(transport::kPsReturned, transport::as_bytes(returned), bytes);
  }
}

void PsServer::serve_requests() {
  rpc_.serve(transport::kConnect, [this](int from, transport::Bytes) {
    // Entries in flight to the previous process are lost unless they were written to mapped memory; both ends
    // continue from the position in the reply.
    rings_.settle(from);
    const std::uint64_t by_message = inbox_.settle(from);
    replication_.flush();
    protocol::ConnectReply reply{board_.key(),
                                 fabric_.doorbell(),
                                 0,
                                 rings_.applied(from).value_or(by_message),
                                 incarnation_,
                                 replication_.stream() != nullptr ? 1U : 0U,
                                 protocol::round_up(runtime_->settings().bytes("push-ring-bytes"))};
    if (runtime_->in_process())
      reply.sink = reinterpret_cast<std::uint64_t>(static_cast<protocol::PushSink*>(&store_));
    return to_bytes(reply);
  });
  rpc_.serve(transport::kOpenRing, [this](int from, transport::Bytes request) {
    return to_bytes(rings_.open(from, from_bytes<std::uint64_t>(request)));
  });
  rpc_.serve(transport::kCurrentLocations, [this](int, transport::Bytes) {
    std::vector<protocol::CurrentLocation> locations;
    for (const protocol::ListedShard& shard : store_.list())
      locations.push_back({shard.description.variable, shard.description.shard, shard.location});
    return to_bytes(locations);
  });
  rpc_.serve(transport::kGpuKey, [this](int, transport::Bytes request) {
    const auto [variable, shard] = from_bytes<std::pair<std::uint32_t, std::uint32_t>>(request);
    return store_.device()->key(variable, shard);
  });
  rpc_.serve(transport::kOpenStagingBuffer, [this](int from, transport::Bytes request) {
    if (replication_.stream() != nullptr)
      return to_bytes(protocol::StagingBufferKey{});  // a replica receives only gradients in host memory
    return to_bytes(store_.device()->open_staging_buffer(from, from_bytes<std::uint64_t>(request)));
  });
  rpc_.serve(transport::kRegionKey, [this](int, transport::Bytes request) {
    return to_bytes(store_.heap().key(from_bytes<std::uint64_t>(request)));
  });
  serve_replicated(transport::kCreateVariable, [this](int, transport::Bytes request) {
    heartbeat_.announce_work();
    return to_bytes(store_.create(from_bytes<protocol::CreateShard>(request)));
  });
  rpc_.serve(transport::kTableStatistics, [this](int, transport::Bytes request) {
    return to_bytes(store_.table_statistics(from_bytes<protocol::ShardOfTable>(request)));
  });
  rpc_.serve(transport::kFindKeys, [this](int, transport::Bytes request) {
    return to_bytes(store_.find_keys(from_bytes<protocol::FindKeys>(request)));
  });
  rpc_.serve(transport::kListKeys, [this](int, transport::Bytes request) {
    return to_bytes(store_.list_keys(from_bytes<protocol::ListKeys>(request)));
  });
  rpc_.serve(transport::kListShards, [this](int, transport::Bytes) { return to_bytes(store_.list()); });
  serve_replicated(transport::kDropVariable, [this](int, transport::Bytes request) {
    store_.drop(from_bytes<std::uint32_t>(request));
    return std::vector<std::byte>{};
  });
  serve_replicated(transport::kCreateGroup, [this](int, transport::Bytes request) {
    auto group = from_bytes<protocol::CreateGroup>(request);
    std::erase_if(group.workers, [this](std::int32_t rank) { return is_lost(rank); });
    store_.create_group(group);
    return std::vector<std::byte>{};
  });
  serve_replicated(transport::kRestartGroup, [this](int, transport::Bytes request) {
    store_.restart_group(from_bytes<std::uint32_t>(request));
    return std::vector<std::byte>{};
  });
  rpc_.serve(transport::kGroupClocks, [this](int, transport::Bytes request) {
    return to_bytes(store_.clocks(from_bytes<std::uint32_t>(request)));
  });
  rpc_.serve(transport::kSaveShards, [this](int, transport::Bytes request) {
    heartbeat_.announce_work();  // shards on a GPU are copied now
    save_began_ = io::TraceFile::Clock::now();
    saver_.begin(from_bytes<protocol::SaveShards>(request), runtime_->count(Role::ps));
    return std::vector<std::byte>{};
  });
  serve_replicated(transport::kRestorePart, [this](int, transport::Bytes request) {
    heartbeat_.announce_work();
    store_.restore(from_bytes<protocol::RestorePart>(request));
    return std::vector<std::byte>{};
  });
  rpc_.serve(transport::kCheckRestore, [this](int, transport::Bytes request) {
    heartbeat_.announce_work();
    check_restore(from_bytes<protocol::CheckRestore>(request));
    return std::vector<std::byte>{};
  });
  serve_replicated(transport::kFetchAdd, [this](int, transport::Bytes request) {
    const auto add = from_bytes<protocol::FetchAdd>(request);
    return to_bytes(board_.fetch_add(add.counter, add.delta));
  });
  rpc_.serve(transport::kPsStatistics, [this](int, transport::Bytes) {
    protocol::PsStatistics statistics = store_.statistics();
    statistics.rings = rings_.open_rings();
    return to_bytes(statistics);
  });
}

void PsServer::serve_replicated(std::uint16_t type, Request handler) {
  const Request& stored = replicated_requests_[type] = std::move(handler);
  rpc_.serve(type, [this, type, &stored](int from, transport::Bytes request) {
    return replication_.execute(type, from, request, stored);
  });
}

void PsServer::replay(std::uint16_t type, int from, transport::Bytes request) {
  if (type == transport::kWorkerDead) {
    follower_.close(from);
    close_rank(from);
  } else if (type == transport::kMemberJoined) {
    add_member(request);
  } else if (const auto found = replicated_requests_.find(type); found != replicated_requests_.end()) {
    found->second(from, request);
  } else {
    throw Error(Code::invalid_argument,
                fmt::format("cannot replay a replication record: unexpected message type {}", type));
  }
}

void PsServer::count(std::uint32_t counter, std::uint64_t delta) {
  if (!Board::has_counter(counter)) return;
  if (persistent_) {
    board_.add_by_entry(counter, delta, persistent_->journal().last().number);
  } else {
    board_.fetch_add(counter, delta);
  }
}

void PsServer::undo_uncommitted_count() {
  const auto entry = persistent_->uncommitted_entry();
  if (!entry || entry->header.kind != protocol::PushKind::count) return;
  if (!Board::has_counter(entry->header.variable)) return;
  board_.undo_entry(entry->header.variable, entry->header.first_row, entry->number);
}

void PsServer::serve_fabric() {
  fabric_.on_message(transport::kReadRows, [this](const transport::Message& m) { rows_.receive(m); });
  fabric_.on_message(transport::kPushEntry, [this](const transport::Message& m) {
    if (!is_lost(m.from)) inbox_.receive(m);
  });
  fabric_.on_message(transport::kDoorbell, [](const transport::Message&) {});  // only ends the sleep
  fabric_.on_message(transport::kHello, [this](const transport::Message& m) { coordinator_.on_greeting(m); });
  fabric_.on_message(transport::kHeartbeat, [this](const transport::Message& m) { heartbeat_.receive(m); });
  fabric_.on_message(transport::kReport, [this](const transport::Message& m) { report(m); });
  fabric_.on_message(transport::kDumpStacks, [](const transport::Message&) { write_stacks(); });
  fabric_.on_message(transport::kWorkerDead, [this](const transport::Message& message) {
    const auto header = transport::read_header<protocol::WorkerDead>(message);
    if (!header || fenced_) return;  // the process that replaces this one answers
    const protocol::WorkerDead worker = *header;
    const bool known = is_lost(worker.rank);  // the coordinator repeats the message to a restarted ps
    const bool fenced = !known && inbox_.knows(worker.rank) && worker.may_live != 0;
    if (!known) mark_dead(worker);
    // Notify only a worker that may be alive: UCX 1.13 may abort a sender whose receiver was just killed.
    if (fenced)
      client(worker.rank)
          .send(transport::kPushApplied,
                transport::as_bytes(protocol::PushApplied{protocol::kFenced, incarnation_}));
    replication_.when_safe([this, worker] {
      runtime_->control_peer(runtime_->member(Role::coordinator, 0))
          .send(transport::kWorkerClosed, transport::as_bytes(worker));
    });
  });
  fabric_.on_message(transport::kMemberJoined, [this](const transport::Message& message) {
    if (fenced_) return;
    const auto rank = from_bytes<cluster::Member>(message.payload).rank;
    add_member(message.payload);
    replication_.when_safe([this, rank] { report_member_known(rank); });
  });
  fabric_.on_message(transport::kCoordinatorReturned,
                     [this](const transport::Message& message) { coordinator_.on_announcement(message); });
  // Forwards the message of a worker that cannot find the coordinator. The worker repeats it until a
  // coordinator accepts it.
  fabric_.on_message(transport::kJoin, [this](const transport::Message& message) {
    if (coordinator_.deadline()) return;
    runtime_->control_peer(runtime_->member(Role::coordinator, 0))
        .send(transport::kJoin, {}, message.payload);
  });
  fabric_.on_message(transport::kShutdown, [this](const transport::Message&) { job_ended_ = true; });
  fabric_.on_message(transport::kFenced, [this](const transport::Message&) { fenced_ = true; });
  fabric_.on_failure([this](transport::Peer& peer) {
    if (replication_.is_replica(peer)) return replication_.abandon("its connection failed");
    if (!follower_.active()) {  // a replica closes a rank when its ps does
      close_rank(peer.rank());
      rings_.release(peer.rank());
      store_.device()->release_staging_buffers(peer.rank());
    }
    // Only the control connection counts: at the end of a job, the coordinator's data fabric may close before
    // kShutdown arrives.
    if (&peer == &runtime_->control_peer(runtime_->member(Role::coordinator, 0)))
      coordinator_.on_connection_lost(peer);
  });
}

/// Sends the statistics so far to the coordinator, for its metrics.
void PsServer::report(const transport::Message& message) {
  const auto request = transport::read_header<protocol::ReportRequest>(message);
  if (!request) return;
  if (request->last != 0 && runtime_->trace() != nullptr) runtime_->trace()->flush();
  protocol::PsReport report = store_.report();
  report.statistics.rings = rings_.open_rings();
  report.use = cluster::use_of_this_process();
  const protocol::ReportHeader header = protocol::answer_to(*request);
  runtime_->control_peer(runtime_->member(Role::coordinator, 0))
      .send(transport::kReport, transport::as_bytes(header), to_bytes(report));
}

/// Rejects everything that the rank still sends, since its closures are about to run elsewhere. Its process
/// may be alive and write to its ring, so the ring is not reused until the connection ends.
void PsServer::mark_dead(const protocol::WorkerDead& worker) {
  runtime_->membership().set(worker.rank,
                             worker.may_live != 0 ? cluster::MemberState::fenced : cluster::MemberState::dead,
                             "declared by the coordinator");
  if (worker.may_live == 0) rpc_.forget(worker.rank);  // UCX 1.13 may abort a sender to a dead process
  close_rank(worker.rank);
  if (persistent_)
    persistent_->append_words(PersistentState::Record::dead, {static_cast<std::uint64_t>(worker.rank)});
}

void PsServer::add_member(transport::Bytes bytes) {
  const auto member = from_bytes<cluster::Member>(bytes);
  if (runtime_->membership().knows(member.rank)) return;  // recovered from the manifest
  runtime_->membership().add(member, cluster::MemberState::alive);
  store_.add_worker(member.rank);
  if (persistent_) persistent_->append(PersistentState::Record::member, bytes);
  replication_.send(transport::kMemberJoined, member.rank, bytes);
}

/// Connects to a restarted coordinator. Drops the state of its previous process, adds members that joined and
/// marks ranks that died in the meantime.
void PsServer::reconnect_coordinator() {
  if (follower_.active()) {  // the other changes arrive as replication records of the ps
    (void)coordinator_.reconnect();
    return coordinator_.acknowledge();
  }
  const int rank = runtime_->member(Role::coordinator, 0).rank;
  close_rank(rank);
  rings_.release(rank);
  store_.device()->release_staging_buffers(rank);
  rings_.reset(rank);
  rpc_.forget(rank);
  const cluster::CoordinatorReturned back = coordinator_.reconnect();
  if (persistent_) persistent_->append(PersistentState::Record::coordinator, to_bytes(back.coordinator));
  for (const cluster::Member& worker : back.workers) {
    if (runtime_->membership().knows(worker.rank)) continue;
    add_member(to_bytes(worker));
    const bool dead = std::find(back.lost.begin(), back.lost.end(), worker.rank) != back.lost.end();
    if (!dead) introduce(worker.rank);
  }
  for (const std::int32_t dead_rank : back.lost) {
    if (!is_lost(dead_rank)) mark_dead({dead_rank, 0});
  }
  heartbeat_.forget_coordinator();
  coordinator_.acknowledge();
  replication_.on_coordinator_returned();
}

const std::string& PsServer::stop_reason() {
  const std::string& verdict = coordinator_.stop_reason();
  return verdict.empty() ? silence_reason_ : verdict;
}

void PsServer::introduce(std::int32_t rank) {
  // The worker's table of members has the address of this ps at the start of the job.
  if (restarted()) {
    client(rank).send(transport::kPsReturned, transport::as_bytes(protocol::PsReturned{incarnation_}),
                      to_bytes(runtime_->self()));
  }
  client(rank).send(transport::kHello, {});
}

void PsServer::report_member_known(std::int32_t rank) {
  introduce(rank);
  runtime_->control_peer(runtime_->member(Role::coordinator, 0))
      .send(transport::kMemberKnown, transport::as_bytes(rank));
}

void PsServer::close_rank(int rank) {
  close_pusher(rank, inbox_, rings_);
  rows_.drop_reads_of(rank);
  store_.remove_worker(rank);
  replication_.send(transport::kWorkerDead, rank, transport::as_bytes(protocol::WorkerDead{rank, 0}));
}

void PsServer::run() {
  log::set_rank_tag(runtime_->log_tag());
  if (persistent_ && persistent_->has_predecessor()) coordinator_.expect_greeting();
  // Each end detects the death of the other only after traffic in both directions.
  runtime_->control_peer(runtime_->member(Role::coordinator, 0)).send(transport::kHello, {});
  board_.asleep().store(0, std::memory_order_relaxed);
  const transport::LivenessWord liveness_word(board_.liveness_word());
  if (restarted()) announce_restart();
  try {
    serve();
  } catch (const RequestAborted&) {
    // The reason is in `fenced_` or stop_reason().
  }
  heartbeat_.end();
  if (fenced_) {
    log::warn("this ps was declared dead and is being replaced by a spare; this process exits");
    return;
  }
  if (!job_ended_) throw Error(Code::unavailable, stop_reason() + "; this ps exits");
  while (rings_.apply_some()) {
  }
  drain_reads();
}

std::optional<protocol::FailoverRequest> PsServer::follow() {
  follower_.begin();
  // Each end detects the death of the other only after traffic in both directions.
  runtime_->control_peer(runtime_->member(Role::coordinator, 0)).send(transport::kHello, {});
  while (!follower_.request() && !job_ended_ && !must_stop()) {
    follower_.send_heartbeat();
    if (!poll_fabric()) fabric_.wait(ReplicaFollower::kHeartbeatPeriod);
  }
  follower_.stop_heartbeats();
  if (!stop_reason().empty()) throw Error(Code::unavailable, stop_reason() + "; this replica of a ps exits");
  if (fenced_) log::warn("the ps continues without this replica; this process exits");
  return follower_.request();
}

void PsServer::serve() {
  Backoff backoff(kPollOnOwnCore, kPollOnSharedCore);
  bool fabric_busy = true;
  for (unsigned turn = 0; !job_ended_ && !must_stop(); ++turn) {
    bool busy = rings_.apply_some();
    replication_.send_if_idle();
    store_.device()->throw_if_failed();
    if (fabric_busy || turn % kTurnsPerFabricPoll == 0) busy |= fabric_busy = poll_fabric();
    if (busy) {
      backoff.reset();
    } else if (!backoff.pause()) {
      sleep();
      backoff.reset();
      fabric_busy = true;
    }
  }
}

bool PsServer::poll_fabric() {
  bool busy = fabric_.progress() != 0;
  if (coordinator_.has_announcement()) reconnect_coordinator();
  busy |= rpc_.answer_pending();
  busy |= follower_.apply_some();
  busy |= inbox_.apply_some();
  busy |= rows_.advance();
  if (saver_.advance_copies_rows()) heartbeat_.announce_work();
  busy |= saver_.advance();
  busy |= poll_replica();
  if (!follower_.active()) heartbeat_.beat();  // a replica sends heartbeats to its agent only: follow()
  if (!coordinator_.deadline() && heartbeat_.coordinator_is_silent())
    silence_reason_ =
        fmt::format("{} is unreachable: no heartbeat within {} ms",
                    runtime_->member(Role::coordinator, 0).name(), runtime_->wait_timeout().count());
  return busy;
}

bool PsServer::poll_replica() {
  const bool advanced = replication_.poll(!coordinator_.deadline());
  if (replication_.consent_overdue()) {
    silence_reason_ =
        fmt::format("cannot continue without the replica: no consent from {} within {} ms",
                    runtime_->member(Role::coordinator, 0).name(), runtime_->wait_timeout().count());
  }
  return advanced;
}

void PsServer::receive_until(const std::function<bool()>& done) {
  const auto must_return = [&] { return done() || must_stop(); };
  while (!must_return()) {
    transport::progress_until(fabric_, transport::deadline_in(std::chrono::milliseconds(100)),
                              [&] { return must_return() || coordinator_.has_announcement(); });
    if (coordinator_.has_announcement()) reconnect_coordinator();
    poll_replica();
    heartbeat_.beat();
  }
  if (must_stop()) throw RequestAborted{};
}

void PsServer::drain_reads() {
  transport::progress_until(fabric_, transport::deadline_in(std::chrono::seconds(1)), [this] {
    rows_.advance();
    return !rows_.busy();
  });
}

void PsServer::sleep() {
  auto asleep = board_.asleep();
  asleep.store(1, std::memory_order_seq_cst);
  // A pusher stores its tail, then loads `asleep`; this ps stores `asleep`, then loads the tails. So at least
  // one of them sees the other's store. Remote pushers always send messages. The timeout covers events
  // without a notification.
  if (!rings_.has_work()) fabric_.wait(rows_.busy() ? std::chrono::milliseconds(1) : heartbeat_.period());
  asleep.store(0, std::memory_order_relaxed);
}

}  // namespace capstan::ps
