// ps_messages.hpp -- what a client asks a ps, and the answers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "capstan/partitioners.hpp"
#include "protocol/descriptor.hpp"
#include "transport/fabric.hpp"

namespace capstan::protocol {

/// kConnect. The board's key, the bell that wakes the ps, and in an embedded cluster its PushSink, by
/// address.
struct ConnectReply {
  transport::RegionKey board;
  std::string doorbell;
  std::uint64_t sink = 0;
  std::uint64_t applied = 0;  // bytes of entries of who asks, after all that it has published
  std::uint32_t incarnation =
      0;  // of the ps; when it is another one than before, shards lie elsewhere (kCurrentLocations)
  std::uint32_t counts_by_call = 0;  // 1: counters are added to by kFetchAdd alone
  std::uint64_t ring_bytes = 0;      // its --push-ring-bytes, by which all cut their pushes alike
};

/// kOpenRing: bytes wanted -> where it lies.
struct RingLocation {
  std::uint64_t region = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// kOpenStagingBuffer: bytes wanted -> memory of the ps's GPU, into which kernels of who asks put gradients
/// for shards that lie there (PushHeader::in_staging_buffer).
struct StagingBufferKey {
  std::vector<std::byte> key;  // of gpu::MappedMemory; empty: pushes to this ps do not go this way
  std::uint32_t number = 0;
};

/// kCreateVariable: one shard. The answer is its ShardLocation.
struct CreateShard {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape;  // of the whole variable
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  Optimizer optimizer;
  Initializer initializer;
  std::uint32_t group = 0;  // of UpdateGroup; 0: none
  std::uint32_t fill = 0;   // a registered function makes the values instead; 0: none
  ShardMemory memory = ShardMemory::host;
  bool stochastic_rounding = false;
};

/// "w/part_0", or "w" of the only shard.
inline std::string name_of(const CreateShard& shard) {
  return shard_name(shard.name, shard.shard, shard.rows == rows_of(shard.shape) ? 1 : 2);
}

/// kListShards -> a vector of these.
struct ListedShard {
  CreateShard description;
  ShardLocation location;
};

/// Sent over the wire: never renumber.
enum class GroupMode : std::uint32_t { asynchronous = 0, stale_synchronous = 1, synchronous = 2 };

/// kCreateGroup -> nothing.
struct CreateGroup {
  std::uint32_t id = 0;  // 1 to BoardLayout::kGroups
  GroupMode mode = GroupMode::asynchronous;
  std::int64_t bound = 0;  // of a stale-synchronous group
  bool average = true;
  std::int32_t backup_workers = 0;
  std::vector<std::int32_t> workers;  // ranks that take part
};

/// kRestartGroup: a group's id -> nothing. kGroupClocks: a group's id -> this.
struct GroupClocks {
  GroupMode mode = GroupMode::asynchronous;
  std::int64_t bound = 0;
  std::uint64_t steps = 0;                                     // ended by all who are waited for
  std::vector<std::pair<std::int32_t, std::uint64_t>> clocks;  // (rank, steps that it has ended)
};

/// Header of kReadRows, a read that the ps serves. Its payload: `segments` ReadSegments, then the row numbers
/// of the sparse ones, as std::uint32_t, one segment after the other. The answer is kRowsPiece messages that
/// make up all rows, or one kReadFailed.
struct ReadRequest {
  std::uint64_t id = 0;        // the client's
  std::uint32_t segments = 0;  // in this message
  std::uint32_t consistent = 0;
};

/// Rows of one shard.
struct ReadSegment {
  std::uint32_t number = 0;  // among all segments of the read, whichever ps serves them
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::uint32_t sparse = 0;     // 1: `rows` row numbers follow; 0: consecutive rows from first_row on
  std::uint64_t first_row = 0;  // within the shard
  std::uint64_t rows = 0;
};

/// Header of kRowsPiece. Sparse: whole rows, the first of them the `begin`-th that the segment names. Dense:
/// bytes, from byte `begin` of the segment on.
struct PieceHeader {
  std::uint64_t id = 0;
  std::uint64_t begin = 0;
  std::uint32_t segment = 0;
  std::uint32_t reserved = 0;
};

/// Header of kReadFailed; the payload is the error's text.
struct ReadFailure {
  std::uint64_t id = 0;
  std::uint64_t code = 0;  // of capstan::Code
};

/// Header of kPushApplied: how many bytes of entries that came as kPushEntry messages have been applied. The
/// header of a kPushEntry is its PushHeader, the payload what follows the header in a ring.
struct PushApplied {
  std::uint64_t bytes = 0;
  std::uint64_t incarnation = 0;  // of the ps: see ConnectReply
};

/// Which rows a checkpoint has. Marks are never the same for two saves, of any coordinator.
struct SavedRows {
  std::uint64_t since = 0;  // those written to since the save with this mark, or all of a shard that does not
                            // know of it; 0: all
  std::uint64_t mark = 0;   // which increments on this save will name; 0: none will
};

/// kSaveShards -> nothing: what is saved is certain from then on, but for shards to which a push is half
/// applied; it is written while the ps goes on, which says kShardsSaved when that is done. A part holds one
/// shard of a variable at most, so a ps writes as many as the most shards of one variable that any ps has.
struct SaveShards {
  std::uint64_t save = 0;  // its number
  std::string folder;
  std::int32_t parts = 1;
  SavedRows rows = {};
  std::string fast_folder = {};  // io::FastLocation
  std::string fast_owner = {};
};

/// Header of kShardsSaved. The payload is io::PartReport of each file that was written, or an error's text. A
/// ps whose files the coordinator sees below --checkpoint-fast-dir says so first, and again when they are in
/// the checkpoint's folder.
struct ShardsSaved {
  std::uint64_t save = 0;
  std::int32_t ps = 0;     // index
  std::int32_t code = 0;   // of capstan::Code; 0 is success
  std::uint64_t fast = 0;  // 1: they are in SaveShards::fast_folder only
};

/// kFetchAdd -> the value before, as std::uint64_t.
struct FetchAdd {
  std::uint64_t counter = 0;
  std::uint64_t delta = 0;
};

/// Header of a ps's kHeartbeat. The coordinator's to a ps has one of the same size, or none when it listens
/// no more.
struct PsHeartbeatHeader {
  std::int32_t busy = 0;          // 1: until the next one it may be silent for long
  std::uint32_t incarnation = 0;  // which process speaks, of those that have been this ps: see PsReturned
};

/// Header of kWorkerDead; kWorkerClosed answers with the same.
struct WorkerDead {
  std::int32_t rank = 0;
  std::int32_t may_live = 0;  // 1: it was silent, and is to be told
};

/// kPsStatistics -> this.
struct PsStatistics {
  std::uint64_t rows_pushed = 0;
  std::uint64_t bytes_pushed = 0;
  std::uint64_t pushes = 0;
  std::uint64_t heap_bytes = 0;
  std::uint64_t rows_sent = 0;  // whole segments of kReadRows; windows are read without the ps knowing
  std::uint64_t rings = 0;      // open now: workers that have pushed and live
  std::uint64_t gpu_bytes = 0;  // values and slots in the memory of its GPU
};

}  // namespace capstan::protocol
