// membership.hpp -- the ranks of a job: who they are, where each is found, and which of them live.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/membership/member.hpp"

namespace capstan::cluster {

enum class MemberState : std::uint8_t {
  absent,   // the rank is set aside, and no process has had it
  joining,  // a worker that was restarted or joins late, and that some ps does not know yet
  alive,
  suspected,  // sends no heartbeat: its process is stopped, or cut off
  dead,       // its process has ended
  fenced,     // counts as dead though its process may live, which was told to end
  left,       // asked to leave, and has
};

/// "suspected"
std::string_view to_string(MemberState state) noexcept;

/// What one rank knows of all ranks. A rank is one process: a worker that is restarted keeps its index and
/// has a new rank. A ps keeps its rank, whatever process serves it.
///
///   absent -----> joining, alive, dead, fenced
///   joining ----> alive, dead, fenced
///   alive ------> suspected, dead, fenced, left
///   suspected --> alive, dead, fenced
///   dead -------> alive, fenced     of a ps or a coordinator alone: it was restarted, or a spare
///   fenced -----> alive             is about to replace it, or has
///
/// All members of the start of the job are alive at first. Thread-safe: any thread reads; one thread, that of
/// the control fabric, changes states.
class Membership {
 public:
  using Clock = std::chrono::steady_clock;
  struct Status {
    MemberState state = MemberState::absent;
    Clock::time_point since;
    std::string cause;  // "no heartbeat within 5000 ms (--heartbeat-timeout)"; may be empty
  };
  struct Change {
    int rank;
    MemberState before;
    MemberState now;
  };
  using Observer = std::function<void(const Change&)>;

  /// `self`: the member of this process, if it is none of the table's.
  explicit Membership(Table table, const std::optional<Member>& self = {});

  /// Of the start of the job, but for addresses: those are the present ones.
  const Table& table() const noexcept { return table_; }
  /// With the present hosts and processes of ps, too.
  Table table_now() const;
  /// Members of the start of the job.
  int count(Role role) const noexcept { return count_[static_cast<std::size_t>(role)]; }
  bool single_host() const noexcept;

  /// Where it is now. The reference stays valid, and shows this process of it only. Throws std::out_of_range
  /// for a rank that is not known.
  const Member& member(int rank) const;
  /// Of the start of the job. REQUIRES: there is one.
  const Member& member(Role role, int index) const;
  /// "worker 1 (rank 2 on node17)", or "rank 9" where that is all that is known.
  std::string name_of(int rank) const;
  bool knows(int rank) const;
  /// Of all workers, by index, the last rank that is known.
  std::vector<int> worker_ranks() const;

  /// A worker that was restarted, or joins late. REQUIRES: its rank is one of table().capacity(), and absent.
  void add(Member member, MemberState state);
  enum class Address : std::uint8_t { control, data };
  /// The process that is this member now; of its two addresses the one.
  void move(const Member& member, Address address);
  /// This process takes the rank of a ps over, whose addresses are its own from now on.
  void become(const Member& ps);

  /// Absent for a rank that cannot be. One atomic load.
  MemberState state(int rank) const noexcept {
    const auto at = static_cast<std::size_t>(rank);
    return at < states_.size() ? states_[at].load(std::memory_order_acquire) : MemberState::absent;
  }
  bool is_alive(int rank) const noexcept { return state(rank) == MemberState::alive; }
  /// Dead, fenced, or has left.
  bool is_lost(int rank) const noexcept { return state(rank) >= MemberState::dead; }
  Status status(int rank) const;
  /// Of this role. Two atomic loads at most.
  int alive(Role role) const noexcept { return alive_[static_cast<std::size_t>(role)].load(); }
  bool all_alive(Role role) const noexcept { return alive(role) == count(role); }
  /// Of the last rank of that index. False for a worker that was never there.
  bool worker_is_alive(int index) const;
  /// Some rank of that index is lost.
  bool has_lost_worker(int index) const;

  /// Changes the state of a rank, then calls the observer. Returns false, and does nothing, if the rank has
  /// that state or if no such change exists: the news of a death may come more than once.
  bool set(int rank, MemberState state, std::string cause = {});
  /// Called after each change, by the thread that changes states; empty for none. Not while states change.
  void on_change(Observer observer) { observer_ = std::move(observer); }

  /// The job begins again with other processes: all of the start are alive, and no other rank is known.
  void begin_again(Table table);

 private:
  static constexpr std::size_t kRoles = 5;

  // REQUIRE the mutex, as all below without a remark of their own.
  void begin();
  void note_process(const Member& member);
  void note_worker(const Member& member);
  const Member* find(int rank) const;
  void store(int rank, MemberState state, std::string cause);

  Table table_;
  std::array<int, kRoles> count_{};
  mutable std::mutex mutex_;
  std::map<int, Member> joined_;             // by rank; never erased: references stay valid
  std::map<int, std::deque<Member>> moved_;  // by rank, all later processes of a ps; the same
  std::vector<int> workers_;                 // by index, the last rank
  std::atomic<bool> any_moved_{false};
  std::vector<std::atomic<MemberState>> states_;  // by rank
  std::vector<Status> statuses_;                  // by rank
  std::array<std::atomic<int>, kRoles> alive_{};
  Observer observer_;
};

}  // namespace capstan::cluster
