// message_types.hpp -- the type of every active message, in one place so that no two share a number.
#pragma once

#include <cstdint>

namespace capstan::cluster {

/// Sent over the wire between ranks of one binary.
enum MessageType : std::uint16_t {
  kReply = 1,     // header: ReplyHeader; payload: result, or text of an error
  kShutdown = 2,  // coordinator to all: the job is over
  kHello = 3,     // opens the connection; to a worker that is taken in, with the coordinator's life
  kCoordinatorReturned = 4,  // coordinator to all: a CoordinatorBack, of one that was started again
  kCoordinatorKnown = 5,     // the answer: it may be asked (ps), has ended what it ran (worker)

  // client to ps (shard/protocol.hpp)
  kDoorbell = 16,  // a push lies in a ring and the ps may be asleep
  kConnect,        // hand out the board
  kCreateVariable,
  kOpenRing,
  kRegionKey,
  kReadRows,  // gather rows and send them back, where windows are not mapped
  kSavePart,
  kRestorePart,
  kPsStatistics,
  kFetchAdd,  // counters of a cluster over several hosts
  kCreateGroup,
  kRestartGroup,
  kGroupClocks,
  kDropVariable,  // some shard of it could not be made
  kWorkerGone,    // coordinator to ps: a rank that counts as dead; answered with kWorkerClosed
  kPushEntry,     // an entry that would lie in a ring, where windows are not mapped
  kListShards,    // coordinator to ps: which shards are there
  kMemberJoined,  // coordinator to ps: a Member, of a worker that was started again; answered with
                  // kMemberKnown

  // ps and its replica (shard/replica_format.hpp)
  kReplicate = 36,  // what changes the ps's state
  kReplicated,      // how much of it the replica has done
  kReplicaLost,     // ps to coordinator: its replica does not follow any more; answered with
  kReplicaDropped,  // coordinator to ps: that replica will not take over

  // ps to client
  kRowsPiece = 40,
  kReadFailed,
  kPushApplied,
  kPartSaved,   // to the coordinator: a part of a checkpoint is on disk, or will not be
  kPsReturned,  // also to the coordinator: its Member, of a ps that was started again

  // coordinator and worker (coordinator/protocol.hpp)
  kRunClosures = 48,
  kClosuresDone,
  kGiveBack,
  kGivenBack,
  kWorkerClosed,  // ps to coordinator: all that a rank pushed, by number, has been applied
  kJoin,          // worker that was started again to coordinator, if need be by way of a ps: its Member
  kMemberKnown,   // ps to coordinator: it takes pushes and questions from a rank, by number
  kHeartbeat,     // worker, or ps that has had one, to coordinator: its process runs; answered with the same
  kFenced,        // coordinator to worker or ps: it counts as dead, and nothing of it is taken any more
  kLeave,         // worker to coordinator: it wants to end; answered with kShutdown when it holds nothing
  kFreeResources = 80,  // coordinator to worker: objects that no closure names any more

  // a ps that is lost, and the spare in its place (shard/takeover.hpp)
  kTakeOver = 72,  // coordinator to spare: be the ps; answered with kPsReturned, or
  kNotTakenOver,   // spare to coordinator: it cannot; the payload says why
  kGpuKey,         // client to ps: how a GPU's kernels of this host read a shard there
  kPlacesNow,      // client to a ps that was a spare: where its shards lie

  kCheckRestore = 76,  // coordinator to ps: compare bytes of a checkpoint (shard/restore_plan.hpp)
  kOpenGpuRoom,        // client to ps: memory of its GPU for gradients that a GPU of this host puts there

  kDumpStacks = 60,  // coordinator to all: write the stacks of your threads (docs/coordinator.md)
  kReport,  // coordinator to all: what have you done so far; answered with the same (shard/report.hpp)
};

}  // namespace capstan::cluster
