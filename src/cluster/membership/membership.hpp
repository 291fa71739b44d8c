// membership.hpp -- the members of a job: roles, locations and states.
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
  absent,   // the rank is reserved, and no process has had it yet
  joining,  // a worker that was restarted or joins late, and that some ps does not know yet
  alive,
  suspected,  // sends no heartbeat: its process is stopped or unreachable
  dead,       // its process has ended
  fenced,     // counts as dead; its process, which may be alive, was told to end
  left,       // has left on its own request
};

/// "suspected"
std::string_view to_string(MemberState state) noexcept;

/// The members, as one rank knows them. Each process of a worker has a rank of its own: a restarted worker
/// keeps its index and has a new rank. A ps keeps its rank when another process replaces it.
///
///   absent -----> joining, alive, dead, fenced
///   joining ----> alive, dead, fenced
///   alive ------> suspected, dead, fenced, left
///   suspected --> alive, dead, fenced
///   dead -------> alive, fenced     only for a coordinator, ps or spare: it was restarted,
///   fenced -----> alive             or a spare replaces it
///
/// Initially all members of the start of the job are alive. Any thread reads; only the thread that drives the
/// control fabric changes states.
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

  /// `self`: the member of this process, if it is not in the table.
  explicit Membership(Table table, const std::optional<Member>& self = {});

  /// The table of the start of the job, with the current addresses.
  const Table& table() const noexcept { return table_; }
  /// Like table(), but also with the current hosts and process IDs of the ps.
  Table table_now() const;
  /// Number of members at the start of the job.
  int count(Role role) const noexcept { return count_[static_cast<std::size_t>(role)]; }
  bool single_host() const noexcept;

  /// Returns the member's current process. The reference stays valid, and keeps describing that process.
  /// Throws std::out_of_range for an unknown rank.
  const Member& member(int rank) const;
  /// Returns a member of the start of the job. REQUIRES: it exists.
  const Member& member(Role role, int index) const;
  /// Returns "worker 1 (rank 2 on node17)"; "rank 9" for an unknown rank.
  std::string name_of(int rank) const;
  bool knows(int rank) const;
  /// Returns the last known rank of each worker, by index.
  std::vector<int> worker_ranks() const;

  /// Adds a worker that was restarted or joins late. REQUIRES: its rank is below table().capacity(), and
  /// absent.
  void add(Member member, MemberState state);
  enum class Address : std::uint8_t { control, data };
  /// Records that another process has replaced the member's process, with one of its two addresses.
  void move(const Member& member, Address address);
  /// Records that this process replaces a ps. `ps` has the addresses of this process.
  void become(const Member& ps);

  /// Returns absent for a rank out of range. One atomic load.
  MemberState state(int rank) const noexcept {
    const auto at = static_cast<std::size_t>(rank);
    return at < states_.size() ? states_[at].load(std::memory_order_acquire) : MemberState::absent;
  }
  bool is_alive(int rank) const noexcept { return state(rank) == MemberState::alive; }
  /// Returns true for a member that is dead or fenced, or has left.
  bool is_lost(int rank) const noexcept { return state(rank) >= MemberState::dead; }
  Status status(int rank) const;
  /// Number of live members with this role. One atomic load.
  int alive(Role role) const noexcept { return alive_[static_cast<std::size_t>(role)].load(); }
  bool all_alive(Role role) const noexcept { return alive(role) == count(role); }
  /// Returns true if the last rank of this worker is alive; false for an unknown index.
  bool worker_is_alive(int index) const;
  /// Returns true if any rank that this worker had is lost.
  bool has_lost_worker(int index) const;

  /// Changes the state of a rank, then calls the observer. Returns false and does nothing if there is no such
  /// transition, or if the rank has this state already: a death may be reported more than once.
  bool set(int rank, MemberState state, std::string cause = {});
  /// Sets the function that is called after each change, by the thread that changes states; empty for none.
  /// Not thread-safe with set().
  void on_change(Observer observer) { observer_ = std::move(observer); }

  /// Starts another job with other processes: all members of `table` are alive, and no other rank is known.
  void begin_again(Table table);

 private:
  static constexpr std::size_t kRoles = 5;

  struct Process {
    Member member;
    bool control = false;  // announced by move() with its control address
    bool data = false;     // announced by move() with its data address
  };

  // The caller must hold the mutex:
  void begin();
  void note_process(const Process& announced);
  void note_worker(const Member& member);
  const Member* find(int rank) const;
  void store(int rank, MemberState state, std::string cause);

  Table table_;
  std::array<int, kRoles> count_{};
  mutable std::mutex mutex_;
  std::map<int, Member> joined_;              // by rank; never erased, so that references stay valid
  std::map<int, std::deque<Process>> moved_;  // by rank: all later processes of a ps; never erased
  std::vector<int> workers_;                  // by index: the last rank
  std::atomic<bool> any_moved_{false};
  std::vector<std::atomic<MemberState>> states_;  // by rank
  std::vector<Status> statuses_;                  // by rank
  std::array<std::atomic<int>, kRoles> alive_{};
  Observer observer_;
};

}  // namespace capstan::cluster
