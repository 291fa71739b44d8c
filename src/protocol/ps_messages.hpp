// ps_messages.hpp -- requests of clients to a ps, and the replies.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "capstan/partitioners.hpp"
#include "cluster/traffic.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/int8_rows.hpp"
#include "transport/fabric.hpp"

namespace capstan::protocol {

/// Reply to kConnect.
struct ConnectReply {
  transport::RegionKey board;
  std::string doorbell;           // address of the doorbell that wakes the ps
  std::uint64_t sink = 0;         // address of the PushSink in an embedded cluster, or 0
  std::uint64_t applied = 0;      // bytes of the client's entries that have been applied; none are pending
  std::uint32_t incarnation = 0;  // of the ps; after a change, shard locations are stale (kCurrentLocations)
  std::uint32_t counts_by_call = 0;  // 1: counters are changed by kFetchAdd only
  std::uint64_t ring_bytes = 0;      // --push-ring-bytes of the ps, by which clients divide their pushes
};

/// kOpenRing: takes the size in bytes, replies the location.
struct RingLocation {
  std::uint64_t region = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// kOpenStagingBuffer: takes the size in bytes, replies a buffer in the memory of the ps's GPU. Kernels of
/// the client write gradients for shards on that GPU into it (PushHeader::in_staging_buffer).
struct StagingBufferKey {
  std::vector<std::byte> key;  // of gpu::MappedMemory; empty: not supported
  std::uint32_t number = 0;
};

/// kCreateVariable: creates one shard, replies its ShardLocation.
struct CreateShard {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape;  // of the complete variable
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  Optimizer optimizer;
  Initializer initializer;
  std::uint32_t group = 0;  // id of its update group; 0: none
  std::uint32_t fill = 0;   // registered function that computes the values; 0: the initializer does
  ShardMemory memory = ShardMemory::host;
  RowStorage storage = {};
  bool table = false;  // a shard of a dynamic table, of at most `rows` rows
  TablePolicy policy = {};
};

/// Returns "w/part_0", or "w" for the only shard of a variable.
inline std::string name_of(const CreateShard& shard) {
  return shard_name(shard.name, shard.shard, shard.rows == rows_of(shard.shape) ? 1 : 2);
}

/// Element of the reply to kListShards.
struct ListedShard {
  CreateShard description;
  ShardLocation location;
};

/// Sent over the wire: never renumber. A ps does not know asynchronous groups.
enum class GroupMode : std::uint32_t { stale_synchronous = 1, synchronous = 2 };

/// kCreateGroup: creates an update group, replies nothing.
struct CreateGroup {
  std::uint32_t id = 0;  // 1 to BoardLayout::kGroups
  GroupMode mode = GroupMode::synchronous;
  std::int64_t bound = 0;  // of a stale-synchronous group
  bool average = true;
  std::int32_t backup_workers = 0;
  std::vector<std::int32_t> workers;  // ranks of its members
};

/// Reply to kGroupClocks, which takes the id of a group. kRestartGroup takes it too, and replies nothing.
struct GroupClocks {
  GroupMode mode = GroupMode::synchronous;
  std::int64_t bound = 0;
  std::uint64_t steps = 0;                                     // completed by all members that take part
  std::vector<std::pair<std::int32_t, std::uint64_t>> clocks;  // (rank, completed steps)
};

/// kTableStatistics: takes the variable and the shard of a table, replies these numbers.
struct ShardOfTable {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
};
struct TableStatistics {
  std::uint64_t keys = 0;
  std::uint64_t most_keys = 0;
  std::uint64_t inserted = 0;
  std::uint64_t erased = 0;
  std::uint64_t refused = 0;  // not inserted, because memory or rows were exhausted
  std::uint64_t evicted = 0;
  std::uint64_t not_admitted = 0;
  std::uint64_t growths = 0;
  std::uint64_t row_bytes = 0;    // of keys, values and slots of all rows that have been used
  std::uint64_t index_bytes = 0;  // of the index
  std::uint64_t sampled_keys = 0;
  std::uint64_t sampled_lines = 0;  // of the index, that searches for the sampled keys read

  /// Average number of lines per search; 0 without keys.
  double probes() const noexcept {
    return sampled_keys == 0 ? 0 : static_cast<double>(sampled_lines) / static_cast<double>(sampled_keys);
  }

  /// Adds the numbers of another shard of the table.
  void add(const TableStatistics& other) noexcept {
    keys += other.keys;
    most_keys += other.most_keys;
    inserted += other.inserted;
    erased += other.erased;
    refused += other.refused;
    evicted += other.evicted;
    not_admitted += other.not_admitted;
    growths += other.growths;
    row_bytes += other.row_bytes;
    index_bytes += other.index_bytes;
    sampled_keys += other.sampled_keys;
    sampled_lines += other.sampled_lines;
  }
};

/// kFindKeys: replies a byte for each key, 1 if it exists.
struct FindKeys {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::vector<std::int64_t> keys;
};

/// kListKeys: replies the keys of these rows as ListedKeys.
struct ListKeys {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
};
struct ListedKeys {
  std::uint64_t rows_end = 0;  // rows from here on have never been used
  std::vector<std::int64_t> keys;
};

/// Header of kReadRows, a read that the ps serves. The payload has `segments` ReadSegments, then for each
/// sparse segment its row numbers (std::uint32_t), and for each keyed segment its keys (std::int64_t). The
/// replies are kRowsPiece messages with all rows, or one kReadFailed.
struct ReadRequest {
  std::uint64_t id = 0;        // assigned by the client
  std::uint32_t segments = 0;  // in this message
  std::uint32_t consistent = 0;
};

enum class ReadKind : std::uint32_t {
  dense = 0,   // consecutive rows from first_row on
  sparse = 1,  // rows by number
  keyed = 2,   // rows of a dynamic table by key
};

/// Form of the values that a ps sends. All but `stored` are for float32 variables in host memory. Sent over
/// the wire: never renumber.
enum class SentValues : std::uint8_t {
  stored = 0,    // in the dtype of the variable
  bfloat16 = 1,  // rounded to nearest
  int8 = 3,      // rows of 8-bit integers (int8_rows.hpp); sparse and keyed segments only
};

/// Returns the bytes of a message for `bytes` bytes of stored values; for int8, of one row.
constexpr std::uint64_t sent_bytes(SentValues values, std::uint64_t bytes) noexcept {
  if (values == SentValues::int8) return int8_row_bytes(bytes / sizeof(float));
  return values == SentValues::bfloat16 ? bytes / 2 : bytes;
}

/// Rows of one shard.
struct ReadSegment {
  std::uint32_t number = 0;  // among all segments of the read on all ps
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  ReadKind kind = ReadKind::dense;
  MissingKeys missing{};  // keyed only
  SentValues values{};
  std::uint64_t first_row = 0;  // within the shard (dense only)
  std::uint64_t rows = 0;
};

/// Header of kRowsPiece. Sparse and keyed: complete rows, starting with the `begin`-th row of the segment.
/// Dense: bytes of the segment, starting at byte `begin`; for SentValues::bfloat16, elements.
struct PieceHeader {
  std::uint64_t id = 0;
  std::uint64_t begin = 0;
  std::uint32_t segment = 0;
  std::uint32_t reserved = 0;
};

/// Header of kReadFailed; the payload is the error message.
struct ReadFailure {
  std::uint64_t id = 0;
  std::uint64_t code = 0;  // a capstan::Code
};

/// Header of kPushApplied: the number of bytes of kPushEntry messages that have been applied. The header of
/// a kPushEntry is its PushHeader; the payload is the rest of the entry as in a ring.
struct PushApplied {
  std::uint64_t bytes = 0;
  std::uint64_t incarnation = 0;  // of the ps, as in ConnectReply
};

/// Rows to save. Marks are unique across saves and coordinators.
struct SavedRows {
  std::uint64_t since = 0;  // saves rows written since the save with this mark, or all rows if the shard does
                            // not know the mark; 0: all rows
  std::uint64_t mark = 0;   // mark of this save for later increments; 0: none
};

/// kSaveShards: saves the current state of all shards, except that a partly applied push is completed
/// first. Replies nothing at once; the ps writes in the background and sends kShardsSaved at the end. A
/// part contains at most one shard of each variable, so a ps writes as many parts as the maximum number of
/// shards per variable on any ps.
struct SaveShards {
  std::uint64_t save = 0;  // number of the save
  std::string directory;
  std::int32_t parts = 1;
  SavedRows rows = {};
  std::string fast_directory = {};  // io::FastLocation
  std::string fast_owner = {};
};

/// Header of kShardsSaved. The payload has an io::PartReport of each file, or an error message. If the
/// coordinator sees the files below --checkpoint-fast-dir, the ps reports them there first, and again once
/// they are in the checkpoint's directory.
struct ShardsSaved {
  std::uint64_t save = 0;
  std::int32_t ps = 0;     // index
  std::int32_t code = 0;   // a capstan::Code; 0 is success
  std::uint64_t fast = 0;  // 1: the files are only in SaveShards::fast_directory so far
};

/// kFetchAdd: replies the previous value as std::uint64_t.
struct FetchAdd {
  std::uint64_t counter = 0;
  std::uint64_t delta = 0;
};

/// Header of a ps's kHeartbeat. The coordinator's kHeartbeat to a ps has a header of the same size, or none
/// once the coordinator no longer listens.
struct PsHeartbeatHeader {
  std::int32_t busy = 0;          // 1: the next heartbeat may be late
  std::uint32_t incarnation = 0;  // as in PsReturned
};

/// Header of kWorkerDead and of its reply kWorkerClosed.
struct WorkerDead {
  std::int32_t rank = 0;
  std::int32_t may_live = 0;  // 1: it only missed heartbeats, so it must be notified
};

/// Reply to kPsStatistics.
struct PsStatistics {
  std::uint64_t rows_pushed = 0;
  std::uint64_t bytes_pushed = 0;
  std::uint64_t pushes = 0;
  std::uint64_t heap_bytes = 0;
  std::uint64_t rows_sent = 0;   // in complete segments of kReadRows; excludes reads through windows
  std::uint64_t rings = 0;       // currently open, one per live worker that has pushed
  std::uint64_t gpu_bytes = 0;   // values and slots in GPU memory
  cluster::KeyCounts keys = {};  // of dynamic tables, in lookups that the ps has served
};

}  // namespace capstan::protocol
