// message_types.hpp -- the type of every active message between ranks, in one place so that no two share a
// number.
#pragma once

#include <cstdint>

namespace capstan::transport {

/// Sent over the wire between ranks of one binary.
enum MessageType : std::uint16_t {
  kReply = 1,     // header: ReplyHeader; payload: result, or text of an error
  kShutdown = 2,  // coordinator to all: the job is over
  kHello = 3,     // opens the connection; to a worker that is taken in, with the coordinator's life
  kCoordinatorReturned = 4,  // coordinator to all: a CoordinatorBack, of one that was started again
  kCoordinatorKnown = 5,     // the answer: it may be asked (ps), has ended what it ran (worker)

  // client to ps (protocol/ps_messages.hpp)
  kDoorbell = 16,  // a push lies in a ring and the ps may be asleep
  kConnect = 17,   // hand out the board
  kCreateVariable = 18,
  kOpenRing = 19,
  kRegionKey = 20,
  kReadRows = 21,  // gather rows and send them back, where windows are not mapped
  kSaveShards = 22,
  kRestorePart = 23,
  kPsStatistics = 24,
  kFetchAdd = 25,  // counters of a cluster over several hosts
  kCreateGroup = 26,
  kRestartGroup = 27,
  kGroupClocks = 28,
  kDropVariable = 29,  // some shard of it could not be made
  kWorkerDead = 30,    // coordinator to ps: a rank that counts as dead; answered with kWorkerClosed
  kPushEntry = 31,     // an entry that would lie in a ring, where windows are not mapped
  kListShards = 32,    // coordinator to ps: which shards are there
  kMemberJoined = 33,  // coordinator to ps: a Member, of a worker that was started again; answered with
                       // kMemberKnown

  // ps and its replica (protocol/replica_format.hpp)
  kReplicate = 36,       // what changes the ps's state
  kReplicated = 37,      // how much of it the replica has done
  kReplicaLost = 38,     // ps to coordinator: its replica does not follow any more; answered with
  kReplicaDropped = 39,  // coordinator to ps: that replica will not take over

  // ps to client
  kRowsPiece = 40,
  kReadFailed = 41,
  kPushApplied = 42,
  kShardsSaved = 43,  // to the coordinator: a part of a checkpoint is on disk, or will not be
  kPsReturned = 44,   // also to the coordinator: its Member, of a ps that was started again

  // coordinator and worker (protocol/closure_messages.hpp)
  kRunClosures = 48,
  kClosuresDone = 49,
  kGiveBack = 50,
  kGivenBack = 51,
  kWorkerClosed = 52,  // ps to coordinator: all that a rank pushed, by number, has been applied
  kJoin = 53,          // worker that was started again to coordinator, if need be by way of a ps: its Member
  kMemberKnown = 54,   // ps to coordinator: it takes pushes and questions from a rank, by number
  kHeartbeat =
      55,        // worker, or ps that has had one, to coordinator: its process runs; answered with the same
  kFenced = 56,  // coordinator to worker or ps: it counts as dead, and nothing of it is taken any more
  kLeave = 57,   // worker to coordinator: it wants to end; answered with kShutdown when it holds nothing
  kFreeResources = 80,  // coordinator to worker: objects that no closure names any more

  // a ps that is lost, and the spare in its place (protocol/failover.hpp)
  kFailover = 72,          // coordinator to spare: be the ps; answered with kPsReturned, or
  kNotTakenOver = 73,      // spare to coordinator: it cannot; the payload says why
  kGpuKey = 74,            // client to ps: how a GPU's kernels of this host read a shard there
  kCurrentLocations = 75,  // client to a ps that was a spare: where its shards lie

  kCheckRestore = 76,  // coordinator to ps: compare bytes of a checkpoint (protocol/restore_plan.hpp)
  kOpenStagingBuffer =
      77,  // client to ps: memory of its GPU for gradients that a GPU of this host puts there

  kDumpStacks = 60,  // coordinator to all: write the stacks of your threads (docs/coordinator.md)
  kReport =
      61,  // coordinator to all: what have you done so far; answered with the same (protocol/report.hpp)
};

/// Whether `number` is that of a type. Two types with one number are a duplicate case, which does not
/// compile; a type that is missing here is a warning.
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
