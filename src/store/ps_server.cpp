// ps_server.cpp -- the loop, its requests, and when it sleeps.
#include "store/ps_server.hpp"

#include <sched.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan::store {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a ps polls before it sleeps. With a core for every rank of its host a wake-up (some 50 us) is
/// worth more than the core; with fewer, polling takes the core from a worker that could use it.
std::chrono::microseconds polling_time(const cluster::Runtime& runtime) {
  const auto& members = runtime.members();
  const auto here = std::count_if(members.begin(), members.end(),
                                  [&](const cluster::Member& m) { return m.host == runtime.self().host; });
  const bool own_core = static_cast<unsigned>(here) <= std::thread::hardware_concurrency();
  return std::chrono::microseconds(own_core ? 1000 : 0);
}

std::atomic_ref<std::uint64_t> word(std::byte* at) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at));
}

}  // namespace

PsServer::PsServer(std::shared_ptr<cluster::Runtime> runtime)
    : runtime_(std::move(runtime)),
      fabric_(runtime_->control()),
      board_(fabric_.allocate(shard::BoardLayout(runtime_->members().size()).bytes())),
      layout_(runtime_->members().size()),
      store_(fabric_, runtime_->settings().bytes("heap-slab-bytes"), runtime_->self().index),
      rings_(board_->memory().data(), runtime_->members().size(), store_.heap(), store_),
      // Clients ask from their data fabrics, and want the answer there.
      rpc_(fabric_,
           [this](int rank) -> transport::Peer& { return runtime_->data_peer(runtime_->member(rank)); }) {
  serve_requests();
}

void PsServer::serve_requests() {
  rpc_.serve(cluster::kConnect, [this](int, transport::Bytes) {
    shard::ConnectReply reply{board_->key(), 0};
    if (runtime_->in_process())
      reply.sink = reinterpret_cast<std::uint64_t>(static_cast<shard::PushSink*>(&store_));
    return to_bytes(reply);
  });
  rpc_.serve(cluster::kOpenRing, [this](int from, transport::Bytes request) {
    return to_bytes(rings_.open(from, from_bytes<std::uint64_t>(request)));
  });
  rpc_.serve(cluster::kRegionKey, [this](int, transport::Bytes request) {
    return to_bytes(store_.heap().key(from_bytes<std::uint64_t>(request)));
  });
  rpc_.serve(cluster::kCreateVariable, [this](int, transport::Bytes request) {
    return to_bytes(store_.create(from_bytes<shard::CreateShard>(request)));
  });
  rpc_.serve(cluster::kLookupRows, [this](int, transport::Bytes request) {
    return store_.gather(from_bytes<shard::LookupRows>(request));
  });
  rpc_.serve(cluster::kAssignRows, [this](int, transport::Bytes request) {
    store_.assign(from_bytes<shard::AssignRows>(request));
    return std::vector<std::byte>{};
  });
  rpc_.serve(cluster::kSavePart, [this](int, transport::Bytes request) {
    const auto save = from_bytes<shard::SavePart>(request);
    return to_bytes(store_.save(save.folder, runtime_->count(Role::ps), save.parts));
  });
  rpc_.serve(cluster::kRestorePart, [this](int, transport::Bytes request) {
    store_.restore(from_bytes<shard::RestorePart>(request).folder);
    return std::vector<std::byte>{};
  });
  rpc_.serve(cluster::kFetchAdd, [this](int, transport::Bytes request) {
    const auto add = from_bytes<shard::FetchAdd>(request);
    if (add.counter >= shard::BoardLayout::kCounters) {
      throw Error(Code::out_of_range, "a board has no counter " + std::to_string(add.counter));
    }
    return to_bytes(word(board_->memory().data() + layout_.counter(add.counter)).fetch_add(add.delta));
  });
  rpc_.serve(cluster::kPsStatistics, [this](int, transport::Bytes) { return to_bytes(store_.statistics()); });

  fabric_.on_message(cluster::kDoorbell, [](const transport::Message&) {});  // arriving is all it does
  fabric_.on_message(cluster::kHello, [](const transport::Message&) {});
  fabric_.on_message(cluster::kShutdown, [this](const transport::Message&) { over_ = true; });
  fabric_.on_failure([this](transport::Peer& peer) {
    rings_.close(peer.rank());
    // The coordinator's other endpoint may close first at the end of a job, before its word that it is over.
    if (&peer == &runtime_->control_peer(runtime_->member(Role::coordinator, 0))) lost_ = peer.name();
  });
}

void PsServer::run() {
  log::set_rank_tag(runtime_->log_tag());
  // Traffic both ways is what makes either end's death visible to the other.
  runtime_->control_peer(runtime_->member(Role::coordinator, 0)).send(cluster::kHello, {});
  const auto polling = polling_time(*runtime_);
  auto idle_since = Clock::now();
  while (!over_ && lost_.empty()) {
    bool busy = fabric_.progress() != 0;
    busy |= rpc_.answer_pending();
    busy |= rings_.apply_some();
    if (busy) {
      idle_since = Clock::now();
    } else if (Clock::now() - idle_since >= polling) {
      sleep();
      idle_since = Clock::now();
    }
  }
  if (!over_) throw Error(Code::unavailable, lost_ + " is gone; this ps ends");
  while (rings_.apply_some()) {
  }
}

void PsServer::sleep() {
  auto asleep = word(board_->memory().data() + layout_.asleep());
  asleep.store(1, std::memory_order_seq_cst);
  // A pusher stores its tail, then looks at `asleep`: one of the two sees the other. Remote pushers ring
  // always; the time-out is for what no doorbell tells.
  if (!rings_.has_work()) fabric_.wait(std::chrono::milliseconds(200));
  asleep.store(0, std::memory_order_relaxed);
}

}  // namespace capstan::store
