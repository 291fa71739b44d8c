// coordinator.cpp -- the dispatcher, and the public face of the coordinator.
#include "coordinator/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "capstan/coordinator.hpp"
#include "cluster/message_types.hpp"
#include "coordinator/protocol.hpp"
#include "coordinator/worker_server.hpp"
#include "transport/bytes.hpp"

namespace capstan {
namespace coordinator {
Coordinator::Coordinator(strategy::Strategy& strategy)
    : strategy_(strategy),
      runtime_(*strategy.runtime()),
      queue_(static_cast<std::size_t>(runtime_.settings().integer("queue-limit"))),
      inflight_limit_(static_cast<std::size_t>(runtime_.settings().integer("max-inflight-per-worker"))) {
  start_embedded_workers();
  transport::Fabric& fabric = runtime_.control();
  fabric.on_message(cluster::kClosureDone, [this](const transport::Message& message) { on_done(message); });
  fabric.on_failure([this](transport::Peer& peer) { on_failure(peer); });
  for (const cluster::Member& member : runtime_.members()) {
    if (member.role == Role::coordinator) continue;
    // Traffic both ways is what makes either end's death visible to the other.
    transport::Peer& peer = runtime_.control_peer(member);
    peer.send(cluster::kHello, {});
    if (member.role == Role::worker) {
      workers_.emplace_back().peer = &peer;
    }
  }
  alive_ = static_cast<int>(workers_.size());
  dispatcher_ = std::jthread([this] { run(); });
}

Coordinator::~Coordinator() {
  over_ = true;
  runtime_.control().wake();
  dispatcher_.join();
  queue_.break_down(Code::cancelled, "the coordinator ended before this function did");
  runtime_.control().silence();
  for (const Worker& worker : workers_) {
    if (worker.alive) worker.peer->send(cluster::kShutdown, {});
  }
  runtime_.control().progress();
  embedded_workers_.clear();
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

std::shared_ptr<Result> Coordinator::schedule(std::uint32_t function, std::vector<std::byte> arguments) {
  auto result = queue_.put(function, std::move(arguments));
  runtime_.control().wake();
  return result;
}

std::shared_ptr<Result> Coordinator::schedule_on(int worker, std::uint32_t function,
                                                 std::vector<std::byte> arguments) {
  if (worker < 0 || static_cast<std::size_t>(worker) >= workers_.size()) {
    throw Error(Code::out_of_range,
                fmt::format("there are workers 0 to {}, not {}", workers_.size() - 1, worker));
  }
  auto result = queue_.put_for(worker, function, std::move(arguments));
  runtime_.control().wake();
  return result;
}

std::vector<int> Coordinator::worker_indices() const {
  std::vector<int> indices;
  for (int worker = 0; worker < static_cast<int>(workers_.size()); ++worker) {
    if (!queue_.lost(worker)) indices.push_back(worker);
  }
  return indices;
}

void Coordinator::run() {
  log::set_rank_tag(runtime_.log_tag());
  transport::Fabric& fabric = runtime_.control();
  while (!over_) {
    const bool received = fabric.progress() != 0;
    if (!dispatch() && !received) fabric.wait(std::chrono::milliseconds(500));
  }
}

/// The worker with the fewest functions, in turn among equals; null when all are full.
Coordinator::Worker* Coordinator::least_busy() {
  Worker* best = nullptr;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[(next_worker_ + i) % workers_.size()];
    if (!worker.alive || worker.running.size() >= inflight_limit_) continue;
    if (best != nullptr && worker.running.size() >= best->running.size()) continue;
    best = &worker;
  }
  return best;
}

/// Closures for one worker go before those for any: the worker holds what they are about.
bool Coordinator::dispatch_for_one() {
  if (!queue_.any_for_one()) return false;
  bool any = false;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    while (worker.alive && worker.running.size() < inflight_limit_) {
      auto closure = queue_.take_for(static_cast<int>(w));
      if (!closure) break;
      send(worker, std::move(*closure));
      any = true;
    }
  }
  return any;
}

/// Hands out closures until none is left or nobody has room. None waits behind another while a worker is
/// idle.
bool Coordinator::dispatch() {
  bool any = dispatch_for_one();
  while (Worker* worker = least_busy()) {
    auto closure = queue_.take();
    if (!closure) break;
    next_worker_ = static_cast<std::size_t>(worker - workers_.data()) + 1;
    send(*worker, std::move(*closure));
    any = true;
  }
  return any;
}

void Coordinator::send(Worker& worker, Closure closure) {
  RunClosure run;
  const auto variables = strategy_.variables();
  for (; worker.known_variables < variables.size(); ++worker.known_variables) {
    run.new_variables.push_back(variables[worker.known_variables]->descriptor);
  }
  for (const auto& recipe : strategy_.resources(worker.known_resources)) {
    run.new_resources.push_back(*recipe);
    ++worker.known_resources;
  }
  run.arguments = closure.arguments;
  const RunHeader header{closure.id, closure.function};
  worker.peer->send(cluster::kRunClosure, transport::as_bytes(header), to_bytes(run));
  const std::uint64_t id = closure.id;
  worker.running.emplace(id, std::move(closure));
}

void Coordinator::on_done(const transport::Message& message) {
  DoneHeader header;
  std::memcpy(&header, message.header.data(), std::min(sizeof header, message.header.size()));
  for (Worker& worker : workers_) {
    if (worker.peer->rank() != message.from) continue;
    const auto found = worker.running.find(header.id);
    if (found == worker.running.end()) return;  // its worker was given up meanwhile
    const Closure closure = std::move(found->second);
    worker.running.erase(found);
    if (header.code == 0) {
      queue_.finish(closure, {message.payload.begin(), message.payload.end()});
    } else {
      const auto* text = reinterpret_cast<const char*>(message.payload.data());
      queue_.fail(closure, static_cast<Code>(header.code), std::string(text, message.payload.size()));
    }
  }
}

/// A ps that the worker had not reached yet would never notice.
void Coordinator::tell_every_ps_of_death(std::int32_t rank) {
  for (int ps = 0; ps < runtime_.count(Role::ps); ++ps) {
    transport::Peer& peer = runtime_.control_peer(runtime_.member(Role::ps, ps));
    if (!peer.failed()) peer.send(cluster::kWorkerGone, transport::as_bytes(rank));
  }
}

void Coordinator::on_failure(transport::Peer& peer) {
  if (over_) return;
  const Role role = runtime_.member(peer.rank()).role;
  if (role == Role::ps) {
    queue_.break_down(
        Code::unavailable,
        peer.name() +
            " is gone, and its shards with it; start again with --resume to go on from the last checkpoint");
    return;
  }
  for (Worker& worker : workers_) {
    if (worker.peer != &peer || !worker.alive) continue;
    worker.alive = false;
    queue_.lose(static_cast<int>(&worker - workers_.data()));
    tell_every_ps_of_death(peer.rank());
    --alive_;
    const auto elsewhere =
        std::count_if(worker.running.begin(), worker.running.end(),
                      [](const auto& running) { return running.second.worker == kAnyWorker; });
    log::warn("{} is gone; its {} functions run elsewhere, {} workers are left", peer.name(), elsewhere,
              alive_.load());
    for (auto closure = worker.running.rbegin(); closure != worker.running.rend(); ++closure) {
      queue_.put_back(std::move(closure->second));
    }
    worker.running.clear();
  }
  if (alive_ == 0) queue_.break_down(Code::unavailable, peer.name() + " is gone, and no worker is left");
}

}  // namespace coordinator

std::vector<std::byte> detail::fetch_bytes(const coordinator::Result& result) {
  using State = coordinator::Result::State;
  std::unique_lock lock(*result.mutex);
  result.changed->wait(lock, [&] { return result.state != State::pending; });
  if (result.state == State::failed) throw Error(result.code, result.message);
  return result.bytes;
}

bool detail::is_ready(const coordinator::Result& result) {
  const std::lock_guard lock(*result.mutex);
  return result.state != coordinator::Result::State::pending;
}

ClusterCoordinator::ClusterCoordinator(ParameterServerStrategy& strategy)
    : implementation_(std::make_unique<coordinator::Coordinator>(strategy.implementation())) {}
ClusterCoordinator::~ClusterCoordinator() = default;

std::shared_ptr<const coordinator::Result> ClusterCoordinator::add(std::uint32_t function,
                                                                   std::vector<std::byte> arguments) {
  return implementation_->schedule(function, std::move(arguments));
}

std::shared_ptr<const coordinator::Result> ClusterCoordinator::add_for(int worker, std::uint32_t function,
                                                                       std::vector<std::byte> arguments) {
  return implementation_->schedule_on(worker, function, std::move(arguments));
}
std::vector<int> ClusterCoordinator::worker_indices() const { return implementation_->worker_indices(); }
bool ClusterCoordinator::has_lost(int worker) const { return implementation_->queue().lost(worker); }

void ClusterCoordinator::join() { implementation_->queue().join(std::nullopt); }
bool ClusterCoordinator::join(std::chrono::milliseconds timeout) {
  return implementation_->queue().join(timeout);
}
bool ClusterCoordinator::done() { return implementation_->queue().done(); }
std::uint64_t ClusterCoordinator::next_resource() { return implementation_->next_resource(); }
int ClusterCoordinator::workers() const { return implementation_->workers(); }

}  // namespace capstan
