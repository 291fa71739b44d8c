// coordinator_memory.hpp -- the state that a restarted coordinator needs from its predecessor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/membership/member.hpp"
#include "cluster/membership/persistent_record.hpp"

namespace capstan::cluster {

/// Maximum number of closures since the last recorded step from which a restarted coordinator can resume;
/// after more, it needs a checkpoint. The closure ledger of a ps has a slightly larger capacity.
inline constexpr std::uint64_t kMaxUnrecordedClosures = 50'000;

/// A spare, and the ps that it replaces.
struct SpareRecord {
  enum class State : std::uint8_t { standby, failing_over, active, dead };
  std::int32_t rank = 0;
  State state = State::standby;
  std::int32_t ps = 0;  // rank of the ps; like the fields below, set once the spare was told to replace it
  std::int32_t ps_index = 0;
  std::uint32_t incarnation = 0;  // of the ps, see protocol::FailoverRequest
};

struct CoordinatorRecord {
  std::optional<std::int64_t> step;  // last recorded step
  std::uint64_t next_closure = 1;    // number of the first closure after that step
  std::uint32_t restores = 0;        // number of restored checkpoints; each starts a new range of numbers
  bool too_many_unrecorded = false;  // more than kMaxUnrecordedClosures since that step
  std::vector<Member> ps;            // current processes; empty: the processes of the job's start
  std::vector<Member> workers;       // restarted or late workers; for each index, only the last process
  std::vector<std::int32_t> lost;    // ranks of dead workers; for each index, only the last rank
  std::vector<std::string> counters;
  std::vector<std::string> groups;     // names of the update groups
  std::vector<std::string> variables;  // names of the initialized variables
  std::vector<SpareRecord> spares;     // empty: all are on standby
  std::vector<std::byte> checkpoint;   // strategy::PsContents::Checkpoint; empty: none

  /// Returns true if the spare is alive and replaces no ps.
  bool is_standby(int spare_rank) const;
  /// Throws Error(data_loss) if too_many_unrecorded: the ledgers no longer show which closures have run.
  void require_resumable() const;
};

/// Payload of kCoordinatorReturned: the new process, and changes of members that the receiver may have
/// missed.
struct CoordinatorReturned {
  std::int32_t incarnation = 0;  // number of restarts
  Member coordinator;
  std::vector<Member> workers;     // sent to ps only: workers that were restarted or joined late
  std::vector<std::int32_t> lost;  // sent to ps only: ranks that count as dead
};

/// Thread-safe.
class CoordinatorMemory {
 public:
  /// Stores every change in `memory` from now on. Reads the record of a previous process, if there is one.
  void set_persistent_memory(std::shared_ptr<transport::PersistentMemory> memory);
  CoordinatorRecord read() const;
  void change(const std::function<void(CoordinatorRecord&)>& how);

 private:
  mutable std::mutex mutex_;
  CoordinatorRecord record_;
  std::unique_ptr<PersistentRecord> persistent_;  // null: changes do not outlive this process
};

}  // namespace capstan::cluster
