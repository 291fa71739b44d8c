// message_types.hpp -- the types of all active messages, in one place so that no two share a number.
#pragma once

#include <cstdint>

namespace capstan::transport {

/// Sent between ranks that run one binary.
enum MessageType : std::uint16_t {
  kReply = 1,                // header: ReplyHeader; payload: the answer, or the text of an error
  kShutdown = 2,             // coordinator to all: the job is over
  kHello = 3,                // opens a connection; contains the incarnation if it admits a worker
  kCoordinatorReturned = 4,  // restarted coordinator to all; payload: a CoordinatorReturned
  kCoordinatorKnown = 5,     // the answer: the ps accepts calls, or the worker has ended its closures

  // client to ps (protocol/ps_messages.hpp)
  kDoorbell = 16,  // a push is in a ring, and the ps may be asleep
  kConnect = 17,   // return the key of the board
  kCreateVariable = 18,
  kOpenRing = 19,
  kRegionKey = 20,
  kReadRows = 21,  // gather rows and send them; used if windows are not mapped
  kSaveShards = 22,
  kRestorePart = 23,
  kPsStatistics = 24,
  kFetchAdd = 25,  // on a counter, in a job on several hosts
  kCreateGroup = 26,
  kRestartGroup = 27,
  kGroupClocks = 28,
  kDropVariable = 29,  // drop a variable of which a shard could not be created
  kWorkerDead = 30,    // coordinator to ps: a rank counts as dead; answered with kWorkerClosed
  kPushEntry = 31,     // an entry of a push; used if the ring cannot be mapped
  kListShards = 32,    // coordinator to ps: list the shards of the ps
  kTableStatistics = 34,
  kFindKeys = 35,
  kListKeys = 58,
  kMemberJoined = 33,  // coordinator to ps: the Member of a worker; answered with kMemberKnown

  // ps and its replica (protocol/replica_format.hpp)
  kReplicate = 36,       // a change of the ps's state
  kReplicated = 37,      // position up to which the replica has applied changes
  kReplicaLost = 38,     // ps to coordinator: its replica is dead or silent
  kReplicaDropped = 39,  // the answer, coordinator to ps: the replica will not replace the ps

  // ps to client
  kRowsPiece = 40,
  kReadFailed = 41,
  kPushApplied = 42,
  kShardsSaved = 43,  // to the coordinator: a part of a checkpoint is on disk, or has failed
  kPsReturned = 44,   // also to the coordinator: the Member of a ps that was restarted or replaced

  // coordinator and worker (protocol/closure_messages.hpp)
  kRunClosures = 48,
  kClosuresDone = 49,
  kGiveBack = 50,
  kGivenBack = 51,
  kWorkerClosed = 52,  // ps to coordinator: all pushes of a dead rank are applied
  kJoin = 53,          // restarted worker to coordinator, or to a ps that forwards it: its Member
  kMemberKnown = 54,   // ps to coordinator: it accepts requests from a rank
  kHeartbeat = 55,     // worker or ps to coordinator; answered with kHeartbeat
  kFenced = 56,        // coordinator to worker or ps: the receiver was fenced and must exit
  kLeave = 57,         // worker to coordinator: it wants to leave; answered with kShutdown
  kDumpStacks = 60,    // coordinator to all: write the stacks of all threads (docs/coordinator.md)
  kReport = 61,        // coordinator to all: report metrics; answered with kReport (protocol/report.hpp)

  // failover (protocol/failover.hpp)
  kFailover = 72,          // coordinator to spare: replace a ps; answered with kPsReturned or kNotTakenOver
  kNotTakenOver = 73,      // spare to coordinator: it cannot replace the ps; the payload is the reason
  kGpuKey = 74,            // client to ps: return the key with which a GPU of this host maps a shard
  kCurrentLocations = 75,  // client to a ps that was a spare: locations of its shards

  kCheckRestore = 76,       // coordinator to ps: compare bytes of a checkpoint (protocol/restore_plan.hpp)
  kOpenStagingBuffer = 77,  // client to ps: open a buffer in its GPU, into which a client's GPU writes
  kFreeResources = 80,      // coordinator to worker: free per-worker objects that no closure refers to
};

/// Returns true if `number` is a message type. Two types with one number do not compile (duplicate case), and
/// a type that is missing here causes a warning.
constexpr bool is_message_type(std::uint32_t number) {
  if (number > 0xffff) return false;
  switch (static_cast<MessageType>(number)) {
    case kReply:
    case kShutdown:
    case kHello:
    case kCoordinatorReturned:
    case kCoordinatorKnown:
    case kDoorbell:
    case kConnect:
    case kCreateVariable:
    case kOpenRing:
    case kRegionKey:
    case kReadRows:
    case kSaveShards:
    case kRestorePart:
    case kPsStatistics:
    case kFetchAdd:
    case kCreateGroup:
    case kRestartGroup:
    case kGroupClocks:
    case kDropVariable:
    case kWorkerDead:
    case kPushEntry:
    case kListShards:
    case kTableStatistics:
    case kFindKeys:
    case kListKeys:
    case kMemberJoined:
    case kReplicate:
    case kReplicated:
    case kReplicaLost:
    case kReplicaDropped:
    case kRowsPiece:
    case kReadFailed:
    case kPushApplied:
    case kShardsSaved:
    case kPsReturned:
    case kRunClosures:
    case kClosuresDone:
    case kGiveBack:
    case kGivenBack:
    case kWorkerClosed:
    case kJoin:
    case kMemberKnown:
    case kHeartbeat:
    case kFenced:
    case kLeave:
    case kFreeResources:
    case kFailover:
    case kNotTakenOver:
    case kGpuKey:
    case kCurrentLocations:
    case kCheckRestore:
    case kOpenStagingBuffer:
    case kDumpStacks:
    case kReport:
      return true;
  }
  return false;
}

}  // namespace capstan::transport
