// spare.cpp -- waits for a failover order, changes the role, and reports a failed change.
#include "ps/durability/spare.hpp"

#include <optional>
#include <string>

#include "base/log.hpp"
#include "base/stacks.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/membership/coordinator_watch.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "protocol/failover.hpp"
#include "ps/durability/persistent_state.hpp"
#include "ps/server/ps_server.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {
namespace {

/// Time for which the fabric is progressed so that the report of a failed failover is sent.
constexpr std::chrono::milliseconds kFailureReportTimeout{500};
/// Longest wait for messages between two heartbeats of a waiting spare.
constexpr std::chrono::milliseconds kSpareHeartbeatPeriod{200};

/// Blocks until the coordinator orders a failover. Returns nullopt if the job has ended. Throws
/// Error(unavailable) if the coordinator dies.
std::optional<protocol::FailoverRequest> wait_for_order(cluster::Runtime& runtime) {
  transport::Fabric& fabric = runtime.control();
  std::optional<std::vector<std::byte>> order;
  bool job_ended = false;
  cluster::CoordinatorWatch coordinator(runtime);
  fabric.on_message(transport::kFailover, [&](const transport::Message& message) {
    order.emplace(message.payload.begin(), message.payload.end());
  });
  fabric.on_message(transport::kShutdown, [&](const transport::Message&) { job_ended = true; });
  fabric.on_message(transport::kHello, [](const transport::Message&) {});
  fabric.on_message(transport::kDumpStacks, [](const transport::Message&) { write_stacks(); });
  fabric.on_message(transport::kCoordinatorReturned,
                    [&](const transport::Message& message) { coordinator.on_announcement(message); });
  fabric.on_failure([&](transport::Peer& peer) { coordinator.on_connection_lost(peer); });
  // Each end detects the death of the other only after traffic in both directions.
  runtime.control_peer(runtime.member(Role::coordinator, 0)).send(transport::kHello, {});
  while (!order && !job_ended && coordinator.stop_reason().empty()) {
    // The agent waits as long as for a worker. A waiting spare sends no heartbeats to the coordinator.
    cluster::Heartbeat::beat(2 * runtime.settings().duration("heartbeat-timeout"));
    if (fabric.progress() == 0) fabric.wait(kSpareHeartbeatPeriod);
    if (!coordinator.has_announcement()) continue;
    (void)coordinator.reconnect();
    coordinator.acknowledge();
  }
  cluster::Heartbeat::pause();
  fabric.on_message(transport::kFailover, [](const transport::Message&) {});
  fabric.on_message(transport::kShutdown, [](const transport::Message&) {});
  fabric.on_message(transport::kCoordinatorReturned, [](const transport::Message&) {});
  fabric.on_failure({});
  if (job_ended) return std::nullopt;
  if (order) return from_bytes<protocol::FailoverRequest>(*order);
  throw Error(Code::unavailable, coordinator.stop_reason() + "; this spare exits");
}

cluster::Member as_ps(const cluster::Runtime& runtime, int rank, int index) {
  cluster::Member self = runtime.self();
  self.role = Role::ps;
  self.rank = rank;
  self.index = index;
  return self;
}

/// Resumes the role of a ps after a restart by the agent.
void resume_as_ps(const std::shared_ptr<cluster::Runtime>& runtime) {
  std::optional<AssumedRole> role;
  {
    const PersistentState persistent(runtime->persistent_memory(), runtime->control(),
                                     static_cast<std::uint64_t>(runtime->table().capacity()),
                                     PsServer::entry_bytes(*runtime), PsServer::ledger_capacity(*runtime));
    role = persistent.assumed_role();
  }
  if (!role) {
    throw Error(Code::unavailable,
                "cannot resume after a restart: the previous process of this spare died before it had "
                "restored the shards of a ps; this spare exits");
  }
  runtime->become(as_ps(*runtime, role->rank, role->index));
  PsServer(runtime).run();
}

std::unique_ptr<PsServer> become_ps(const std::shared_ptr<cluster::Runtime>& runtime,
                                    protocol::FailoverRequest failover) {
  const std::int32_t spare = runtime->self().rank;
  const cluster::Member self = as_ps(*runtime, failover.rank, failover.index);
  runtime->become(self);
  try {
    return std::make_unique<PsServer>(runtime, std::move(failover));
  } catch (const std::exception& error) {
    const std::string text = error.what();
    transport::Fabric& fabric = runtime->control();
    fabric.remove_handlers();
    runtime->control_peer(runtime->member(Role::coordinator, 0))
        .send(transport::kNotTakenOver, transport::as_bytes(spare), std::as_bytes(std::span(text)));
    transport::progress_until(fabric, transport::deadline_in(kFailureReportTimeout), [] { return false; });
    throw Error(Code::unavailable, "this spare cannot replace " + self.name() + ": " + text);
  }
}

void follow_ps(const std::shared_ptr<cluster::Runtime>& runtime) {
  PsServer server(runtime);
  const auto order = server.follow();
  if (!order) return;
  runtime->become(as_ps(*runtime, order->rank, order->index));
  server.fail_over(*order);
  server.run();
}

}  // namespace

void run_spare(const std::shared_ptr<cluster::Runtime>& runtime) {
  log::set_rank_tag(runtime->log_tag());
  if (runtime->ps_have_replicas()) return follow_ps(runtime);
  if (runtime->persistent_memory() != nullptr && runtime->persistent_memory()->was_mapped())
    return resume_as_ps(runtime);
  auto order = wait_for_order(*runtime);
  if (order) become_ps(runtime, *std::move(order))->run();
}

}  // namespace capstan::ps
