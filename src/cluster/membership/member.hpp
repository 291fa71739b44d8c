// member.hpp -- one rank of the cluster as all others know it.
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

/// What a rank says of itself before anybody knows its role.
struct Hello {
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t build = 0;  // hash of the binary and of libcapstan.so
  RoleRequest roles;        // what the role map is made from, which must agree
  std::vector<std::byte> control_address;
  std::vector<std::byte> data_address;
  std::int64_t replicas = 1;          // which must agree, too
  std::int32_t restarts = 0;          // and this: how often a worker's agent starts it again
  std::int32_t late = 0;              // and this: how many workers may come in later
  std::int64_t coordinator_wait = 0;  // and this: milliseconds that all wait for one that was killed
  std::string own_role = {};          // of --role; "" for none
  topology::AvailableResources resources = {};
};

/// A ps and a spare, which may become one, have one thread and one fabric.
constexpr bool one_fabric(Role role) noexcept { return role == Role::ps || role == Role::spare; }

struct Member {
  int rank = 0;
  Role role = Role::worker;
  int index = 0;  // among its role
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

/// What the agent hands down to its child.
///
/// A worker that is started again keeps its index and has a new rank, so that all that is kept by rank, in
/// every process, is of one life only, and what still comes from an earlier life is known by its rank. The
/// ranks after those of `members` are set aside for this, `restarts` for each worker; those behind them, for
/// workers that come in late, each with a new index.
struct Table {
  int rank = 0;  // beyond `members` for a worker that was started again, or came late
  std::vector<Member> members;
  int restarts = 0;                   // how often each worker of `members` may be started again
  int late = 0;                       // most workers that join late
  std::int64_t coordinator_wait = 0;  // milliseconds that all wait for a coordinator that was killed; 0: none
  transport::JobSecret secret = {};   // of this job; every process that is given the table may send

  int count(Role role) const noexcept {
    return static_cast<int>(
        std::count_if(members.begin(), members.end(), [role](const Member& m) { return m.role == role; }));
  }
  /// A coordinator that is killed is started again.
  bool coordinator_may_return() const noexcept { return coordinator_wait > 0 && restarts > 0; }
  /// Ranks that there may ever be.
  int capacity() const noexcept { return first_late() + late; }
  /// The rank of a worker from its `time`-th start on, after the first; from 1.
  int rank_of_restart(int index, int time) const noexcept {
    return static_cast<int>(members.size()) + index * restarts + time - 1;
  }
  /// The rank of the `time`-th worker that joins late; from 1.
  int rank_of_late(int time) const noexcept { return first_late() + time - 1; }
  bool is_late(int of_rank) const noexcept { return of_rank >= first_late(); }
  /// How often a worker has been started again; `restarts` of one that came late, which nobody starts again.
  int times_restarted(int of_rank) const noexcept {
    const int beyond = of_rank - static_cast<int>(members.size());
    if (is_late(of_rank)) return restarts;
    return beyond < 0 ? 0 : beyond % restarts + 1;
  }
  /// REQUIRES: of_rank is of a worker that was started again.
  int index_of_restart(int of_rank) const noexcept {
    return (of_rank - static_cast<int>(members.size())) / restarts;
  }
  /// Of a worker that is none of `members`. REQUIRES: of_rank < capacity().
  int index_of(int of_rank) const noexcept {
    return is_late(of_rank) ? count(Role::worker) + of_rank - first_late() : index_of_restart(of_rank);
  }

 private:
  int first_late() const noexcept {
    return static_cast<int>(members.size()) + count(Role::worker) * restarts;
  }
};

}  // namespace capstan::cluster
