// coordinator_memory.hpp -- what a coordinator that was started again has to know of the one before it.
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

/// After so many closures since the last recorded step a coordinator that is killed cannot go on from there,
/// but from a checkpoint: every ps remembers some more of them.
inline constexpr std::uint64_t kMostOpenClosures = 50'000;

/// A spare, and the ps whose place it takes.
struct SpareRecord {
  enum class State : std::uint8_t { waits, takes, stands, dead };
  std::int32_t rank = 0;
  State state = State::waits;
  std::int32_t ps = 0;  // rank; this and what follows once it was told to take its place
  std::int32_t ps_index = 0;
  std::uint32_t incarnation = 0;  // of the ps: protocol::FailoverRequest
};

struct CoordinatorRecord {
  std::optional<std::int64_t> step;  // recorded last
  std::uint64_t next_closure = 1;    // the number of the first one after it
  std::uint32_t restores = 0;        // of checkpoints; closures after each have numbers of their own
  bool too_much_open = false;        // more than kMostOpenClosures since
  std::vector<Member> ps;            // as they are to be found now; empty: as at the start
  std::vector<Member> workers;       // none of the start's; of each index the last
  std::vector<std::int32_t> lost;    // ranks of workers, of each index the last
  std::vector<std::string> counters;
  std::vector<std::string> groups;     // of updates
  std::vector<std::string> variables;  // which have their first values
  std::vector<SpareRecord> spares;     // empty: all wait
  std::vector<std::byte> checkpoint;   // strategy::PsContents::Checkpoint; empty: there is none

  /// Nothing has been asked of that spare, and it was not lost.
  bool waits(int spare_rank) const;
  /// Throws Error(data_loss): what has run since the recorded step cannot be told from what has not.
  void require_not_too_much_open() const;
};

/// transport::kCoordinatorReturned: who it is, and what may not have been said before.
struct CoordinatorBack {
  std::int32_t incarnation = 0;  // how often it has been started again
  Member coordinator;
  std::vector<Member> workers;     // to a ps: those that were started again, or came late
  std::vector<std::int32_t> lost;  // to a ps: ranks that count as dead
};

/// Thread-safe.
class CoordinatorMemory {
 public:
  /// From now on every change outlives this process. What is there already is taken up.
  void keep_in(std::shared_ptr<transport::PersistentMemory> memory);
  CoordinatorRecord read() const;
  void change(const std::function<void(CoordinatorRecord&)>& how);

 private:
  mutable std::mutex mutex_;
  CoordinatorRecord record_;
  std::unique_ptr<PersistentRecord> kept_;  // null: nothing is kept
};

}  // namespace capstan::cluster
