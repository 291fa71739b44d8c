// coordinator_memory.hpp -- what a restarted coordinator must know of its predecessor.
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

/// Closures since the last recorded step from which a restarted coordinator can resume; after more it needs a
/// checkpoint. The closure ledger of a ps holds some more.
inline constexpr std::uint64_t kMaxOpenClosures = 50'000;

/// A spare, and the ps that it replaces.
struct SpareRecord {
  enum class State : std::uint8_t { standby, failing_over, active, dead };
  std::int32_t rank = 0;
  State state = State::standby;
  std::int32_t ps = 0;  // rank; this and the following once the spare was told to replace it
  std::int32_t ps_index = 0;
  std::uint32_t incarnation = 0;  // of the ps: protocol::FailoverRequest
};

struct CoordinatorRecord {
  std::optional<std::int64_t> step;  // last recorded
  std::uint64_t next_closure = 1;    // number of the first closure after that step
  std::uint32_t restores = 0;        // of checkpoints; closures after each have numbers of their own
  bool too_many_open = false;        // more than kMaxOpenClosures since that step
  std::vector<Member> ps;            // current processes; empty: those of the start
  std::vector<Member> workers;       // those that were restarted or joined late; per index the last
  std::vector<std::int32_t> lost;    // ranks of dead workers; per index the last
  std::vector<std::string> counters;
  std::vector<std::string> groups;     // of updates
  std::vector<std::string> variables;  // those that are initialized
  std::vector<SpareRecord> spares;     // empty: all are waiting
  std::vector<std::byte> checkpoint;   // strategy::PsContents::Checkpoint; empty: none

  /// Returns true if the spare is alive and replaces no ps.
  bool is_standby(int spare_rank) const;
  /// Throws Error(data_loss) if too_many_open: the ledgers no longer show which closures have run.
  void require_resumable() const;
};

/// Payload of kCoordinatorReturned: the new process, and changes of members that the receiver may have
/// missed.
struct CoordinatorReturned {
  std::int32_t incarnation = 0;  // number of restarts
  Member coordinator;
  std::vector<Member> workers;     // to a ps: those that were restarted or joined late
  std::vector<std::int32_t> lost;  // to a ps: ranks that count as dead
};

/// Thread-safe.
class CoordinatorMemory {
 public:
  /// Stores every change in `memory` from now on. Reads the record of a previous process, if there is one.
  void keep_in(std::shared_ptr<transport::PersistentMemory> memory);
  CoordinatorRecord read() const;
  void change(const std::function<void(CoordinatorRecord&)>& how);

 private:
  mutable std::mutex mutex_;
  CoordinatorRecord record_;
  std::unique_ptr<PersistentRecord> persistent_;  // null: changes do not outlive this process
};

}  // namespace capstan::cluster
