// failover_manager.hpp -- spares, and which of them is in the place of which ps.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/runtime.hpp"
#include "protocol/failover.hpp"
#include "strategy/ps_contents.hpp"

namespace capstan::coordinator {

/// Belongs to the thread that drives the control fabric, but for `now_of` and `waiting`. Not inside
/// progress(). A coordinator that is started again goes on with the states that the earlier process noted.
class FailoverManager {
 public:
  using Clock = std::chrono::steady_clock;

  FailoverManager(cluster::Runtime& runtime, const strategy::PsContents& contents);

  /// To be called again and again as long as a ps is gone, after its own host's time is up: fences off the
  /// process that was the ps, which may be stopped and resume, and tells the next spare to take its place.
  /// `dead` are the ranks that count as dead. False when it is lost for good; then
  /// `why` says why, by the ps's rank.
  bool advance(const cluster::Member& ps, const std::vector<std::int32_t>& dead, Clock::time_point now);
  const std::string& why(int ps) { return why_[ps]; }

  /// A spare has been told to take the place of this ps, and has not said yet that it has.
  bool is_being_replaced(int ps) const;
  /// Nothing has been asked of that spare yet, and it lives.
  bool waits(int rank) const;
  /// Of the process that is the ps, or is about to be; beats of others do not count.
  std::uint32_t incarnation_of(int ps) const;
  /// A process says that it is this ps. False when its place is another one's: it is told to end.
  bool admits(const cluster::Member& ps, std::uint32_t incarnation);
  /// The process of that incarnation has the shards of the ps. REQUIRES: the coordinator's record has its
  /// address.
  void welcome(int ps, std::uint32_t incarnation);
  /// The ps is gone, and so is the spare that was in its place, if one was.
  void lose_ps(int ps);
  /// A spare has died, whatever it was doing.
  void lose(int rank);
  /// It says that it cannot take the place that it was told to.
  void fail(int rank, const std::string& why);

  /// A ps says that its replica does not follow it any more. True when that replica will not take its place.
  /// Inside progress(), too.
  bool drop_replica(const cluster::Member& ps);

  /// Spares that nothing is asked of yet. Any thread.
  int waiting() const;
  /// "now ps 1", or nothing. Any thread.
  std::string now_of(int rank) const;

 private:
  using State = cluster::SpareRecord::State;
  struct Spare : cluster::SpareRecord {
    Clock::time_point by{};  // when it takes
  };
  Spare* find(State state, int ps);
  Spare* choose(const cluster::Member& ps);
  protocol::FailoverRequest takeover_of(const cluster::Member& ps) const;
  bool tell(Spare& spare, const cluster::Member& ps, const std::vector<std::int32_t>& dead,
            Clock::time_point now);
  void set(Spare& spare, State state);
  void tell_members(const Spare& spare);
  /// For the coordinator's next process, before anything of it is said to others.
  void note();

  cluster::Runtime& runtime_;
  const strategy::PsContents& contents_;
  mutable std::mutex mutex_;  // of the spares' states
  std::vector<Spare> spares_;
  std::map<int, std::string> why_;
};

}  // namespace capstan::coordinator
