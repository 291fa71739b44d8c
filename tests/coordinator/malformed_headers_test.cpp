// malformed_headers_test.cpp -- every handler ignores a header of the wrong size, and the cluster continues.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "capstan/coordinator.hpp"
#include "capstan/variable.hpp"
#include "protocol/closure_messages.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "protocol/replica_format.hpp"
#include "protocol/report.hpp"
#include "strategy/context.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace {

enum class To { coordinator, coordinator_data, ps, worker };

/// A type whose handler at `to` expects a header of `size` bytes.
struct Handled {
  To to;
  transport::MessageType type;
  std::size_t size;
};

constexpr std::size_t kCallId = sizeof(std::uint64_t);
constexpr std::size_t kReplyHeader = 16;  // bytes of the header in rpc.cpp

constexpr std::array kHandled{
    Handled{To::coordinator, transport::kWorkerClosed, sizeof(protocol::WorkerDead)},
    Handled{To::coordinator, transport::kMemberKnown, sizeof(std::int32_t)},
    Handled{To::coordinator, transport::kPsReturned, sizeof(protocol::PsReturned)},
    Handled{To::coordinator, transport::kNotTakenOver, sizeof(std::int32_t)},
    Handled{To::coordinator, transport::kReport, sizeof(protocol::ReportHeader)},
    Handled{To::coordinator, transport::kShardsSaved, sizeof(protocol::ShardsSaved)},
    Handled{To::coordinator_data, transport::kReply, kReplyHeader},
    Handled{To::coordinator_data, transport::kRowsPiece, sizeof(protocol::PieceHeader)},
    Handled{To::coordinator_data, transport::kReadFailed, sizeof(protocol::ReadFailure)},
    Handled{To::coordinator_data, transport::kPushApplied, sizeof(protocol::PushApplied)},
    Handled{To::coordinator_data, transport::kPsReturned, sizeof(protocol::PsReturned)},
    Handled{To::worker, transport::kRunClosures, sizeof(protocol::BatchHeader)},
    Handled{To::worker, transport::kFreeResources, sizeof(protocol::FreeHeader)},
    Handled{To::worker, transport::kGiveBack, sizeof(protocol::GiveBackHeader)},
    Handled{To::worker, transport::kReport, sizeof(protocol::ReportRequest)},
    Handled{To::ps, transport::kReadRows, sizeof(protocol::ReadRequest)},
    Handled{To::ps, transport::kPushEntry, sizeof(protocol::PushHeader)},
    Handled{To::ps, transport::kReport, sizeof(protocol::ReportRequest)},
    Handled{To::ps, transport::kWorkerDead, sizeof(protocol::WorkerDead)},
    Handled{To::ps, transport::kReplicated, sizeof(protocol::ReplicaProgress)},
    Handled{To::ps, transport::kConnect, kCallId},
    Handled{To::ps, transport::kCreateVariable, kCallId},
    Handled{To::ps, transport::kOpenRing, kCallId},
    Handled{To::ps, transport::kRegionKey, kCallId},
    Handled{To::ps, transport::kSaveShards, kCallId},
    Handled{To::ps, transport::kRestorePart, kCallId},
    Handled{To::ps, transport::kPsStatistics, kCallId},
    Handled{To::ps, transport::kFetchAdd, kCallId},
    Handled{To::ps, transport::kCreateGroup, kCallId},
    Handled{To::ps, transport::kRestartGroup, kCallId},
    Handled{To::ps, transport::kGroupClocks, kCallId},
    Handled{To::ps, transport::kDropVariable, kCallId},
    Handled{To::ps, transport::kListShards, kCallId},
    Handled{To::ps, transport::kTableStatistics, kCallId},
    Handled{To::ps, transport::kFindKeys, kCallId},
    Handled{To::ps, transport::kListKeys, kCallId},
    Handled{To::ps, transport::kGpuKey, kCallId},
    Handled{To::ps, transport::kCurrentLocations, kCallId},
    Handled{To::ps, transport::kCheckRestore, kCallId},
    Handled{To::ps, transport::kOpenStagingBuffer, kCallId},
};

/// Types whose handlers read no header.
constexpr std::array kWithoutHeader{transport::kShutdown,     transport::kCoordinatorReturned,
                                    transport::kDoorbell,     transport::kMemberJoined,
                                    transport::kReplicaLost,  transport::kReplicaDropped,
                                    transport::kClosuresDone, transport::kGivenBack,
                                    transport::kJoin,         transport::kFenced,
                                    transport::kLeave,        transport::kDumpStacks,
                                    transport::kFailover};
/// Types that accept headers of several sizes, or whose handlers exist only in recovery or on a replica.
constexpr std::array kOtherwiseTested{transport::kHello, transport::kHeartbeat, transport::kCoordinatorKnown,
                                      transport::kReplicate};

std::vector<std::size_t> wrong_sizes(std::size_t right) { return {0, 1, right - 1, right + 1, 120}; }

/// Sends headers of all wrong sizes to every rank except this worker; returns the number of messages.
std::int64_t send_malformed() {
  auto& runtime = strategy::Context::current().client().runtime();
  transport::Fabric& fabric = runtime.data();
  const auto connect = [&](const cluster::Member& to, const auto& address) -> transport::Peer& {
    return fabric.connect(to.rank, to.name(), address);
  };
  const cluster::Member& coordinator = runtime.member(Role::coordinator, 0);
  const cluster::Member& ps = runtime.member(Role::ps, 0);
  const cluster::Member& worker = runtime.member(Role::worker, 1 - runtime.self().index);
  const std::array<transport::Peer*, 4> peers{
      &connect(coordinator, coordinator.control_address), &connect(coordinator, coordinator.data_address),
      &connect(ps, ps.control_address), &connect(worker, worker.control_address)};
  std::int64_t sent = 0;
  for (const Handled& handled : kHandled) {
    for (const std::size_t size : wrong_sizes(handled.size)) {
      const std::vector<std::byte> header(size);
      peers[static_cast<std::size_t>(handled.to)]->send(handled.type, header);
      ++sent;
    }
  }
  fabric.progress();
  return sent;
}

std::int64_t count_one_function(const Counter& counter) { return counter.fetch_add(1); }

TEST(MalformedHeaders, EveryTypeIsListed) {
  const auto has = [](const auto& types, std::uint32_t type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  for (std::uint32_t type = 0; type <= 0xffff; ++type) {
    if (!transport::is_message_type(type)) continue;
    const bool sent = std::any_of(kHandled.begin(), kHandled.end(),
                                  [type](const Handled& handled) { return handled.type == type; });
    EXPECT_EQ(int{sent} + int{has(kWithoutHeader, type)} + int{has(kOtherwiseTested, type)}, 1)
        << "message type " << type << ": add it to kHandled if its handlers read a header";
  }
}

TEST(MalformedHeaders, AreIgnoredByEveryHandler) {
  const RankThreads ranks({.ranks = 4, .flags = {{"ps", "1"}}});
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  const Variable<float> w("w", Shape{8, 4}, initializers::zeros());
  const Counter counter("runs");
  ClusterCoordinator coordinator(strategy);

  const auto before = transport::malformed_messages();
  const auto sent = static_cast<std::uint64_t>(coordinator.schedule<&send_malformed>().fetch());
  const auto all = poll([&]() -> std::optional<bool> {
    w.pull();  // receives on the coordinator's data fabric
    if (transport::malformed_messages() - before < sent) return std::nullopt;
    return true;
  });
  EXPECT_TRUE(all.has_value());
  EXPECT_EQ(transport::malformed_messages() - before, sent);

  for (int step = 0; step < 20; ++step) coordinator.schedule<&count_one_function>(counter);
  coordinator.join();
  EXPECT_EQ(counter.value(), 20);
  w.assign_add(std::vector<float>(32, 2));
  const auto values = w.pull();
  EXPECT_EQ(values.size(), 32U);
  for (const float value : values) EXPECT_EQ(value, 2);
}

}  // namespace
}  // namespace capstan
