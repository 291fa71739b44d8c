// member.hpp -- a rank of the job, as all ranks know it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/available_resources.hpp"
#include "capstan/cluster.hpp"
#include "cluster/roles/role_request.hpp"
#include "transport/job_secret.hpp"

namespace capstan::cluster {

/// Properties that a rank reports about itself before roles are assigned.
struct Hello {
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t build = 0;  // hash of the binary and of libcapstan.so
  RoleRequest roles;        // input of the role map; must be equal on all ranks
  std::vector<std::byte> control_address;
  std::vector<std::byte> data_address;
  std::int64_t replicas = 1;          // must be equal on all ranks, like the next three fields
  std::int32_t restarts = 0;          // maximum number of restarts of a worker by its agent
  std::int32_t late = 0;              // maximum number of workers that join late
  std::int64_t coordinator_wait = 0;  // ms that all ranks wait for a coordinator that was killed
  std::string own_role = {};          // value of --role, may differ between ranks; "" if not set
  topology::AvailableResources resources = {};
};

/// A ps has one thread and one fabric, and so has a spare, which may become a ps.
constexpr bool one_fabric(Role role) noexcept { return role == Role::ps || role == Role::spare; }

struct Member {
  int rank = 0;
  Role role = Role::worker;
  int index = 0;  // number among the members with this role
  std::string host;
  std::int64_t pid = 0;
  std::vector<std::byte> control_address;
  std::vector<std::byte> data_address;
  topology::AvailableResources resources = {};  // of its first process

  /// "ps 1 (rank 2 on node17)"
  std::string name() const {
    return std::string(to_string(role)) + " " + std::to_string(index) + " (rank " + std::to_string(rank) +
           " on " + host + ")";
  }
};

/// The table of members, which the agent passes to its child.
///
/// A restarted worker keeps its index and has a new rank. State that is stored by rank therefore belongs to
/// one incarnation, and late messages of the previous one are recognized by their rank. The ranks after those
/// of `members` are reserved for restarted workers, `restarts` per worker. The ranks after these are reserved
/// for workers that join late, each with a new index.
struct Table {
  int rank = 0;  // beyond `members` for a worker that was restarted or joins late
  std::vector<Member> members;
  int restarts = 0;                   // maximum number of restarts of each worker of `members`
  int late = 0;                       // maximum number of workers that join late
  std::int64_t coordinator_wait = 0;  // ms that all ranks wait for a coordinator that was killed; 0: none
  transport::JobSecret secret = {};   // of this job; every process that has the table may send messages

  int count(Role role) const noexcept {
    return static_cast<int>(
        std::count_if(members.begin(), members.end(), [role](const Member& m) { return m.role == role; }));
  }
  /// Returns true if the agent of a coordinator that is killed restarts it.
  bool coordinator_may_return() const noexcept { return coordinator_wait > 0 && restarts > 0; }
  /// Upper bound of all ranks that the job may have.
  int capacity() const noexcept { return first_late() + late; }
  /// The rank of a worker after its `time`-th restart, from 1.
  int rank_of_restart(int index, int time) const noexcept {
    return static_cast<int>(members.size()) + index * restarts + time - 1;
  }
  /// The rank of the `time`-th worker that joins late; from 1.
  int rank_of_late(int time) const noexcept { return first_late() + time - 1; }
  bool is_late(int of_rank) const noexcept { return of_rank >= first_late(); }
  /// Number of restarts of a worker so far; `restarts` for a worker that joined late, since it has no agent.
  int times_restarted(int of_rank) const noexcept {
    const int beyond = of_rank - static_cast<int>(members.size());
    if (is_late(of_rank)) return restarts;
    return beyond < 0 ? 0 : beyond % restarts + 1;
  }
  /// REQUIRES: of_rank is the rank of a restarted worker.
  int index_of_restart(int of_rank) const noexcept {
    return (of_rank - static_cast<int>(members.size())) / restarts;
  }
  /// Index of a worker that is not one of `members`. REQUIRES: of_rank < capacity().
  int index_of(int of_rank) const noexcept {
    return is_late(of_rank) ? count(Role::worker) + of_rank - first_late() : index_of_restart(of_rank);
  }

 private:
  int first_late() const noexcept {
    return static_cast<int>(members.size()) + count(Role::worker) * restarts;
  }
};

}  // namespace capstan::cluster
