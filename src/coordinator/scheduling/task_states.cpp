// task_states.cpp -- reports which ranks are alive and which are dead.
#include <algorithm>

#include "capstan/coordinator.hpp"
#include "coordinator/coordinator.hpp"

namespace capstan {

std::vector<TaskState> coordinator::Coordinator::task_states() const {
  const std::vector<int> worker_ranks = members_.worker_ranks();
  std::vector<TaskState> states;
  for (const cluster::Member& member : runtime_.members()) {
    if (member.role == Role::coordinator) continue;
    const bool worker = member.role == Role::worker;
    // A restarted worker has a new rank.
    const int rank = worker ? worker_ranks.at(static_cast<std::size_t>(member.index)) : member.rank;
    const bool dead = members_.state(rank) != cluster::MemberState::alive;
    std::string name = runtime_.name_of(rank);
    if (const std::string now = ps_recovery_.failovers().role_of(rank); !now.empty()) name += ", " + now;
    states.push_back({member.role, member.index, dead, std::move(name)});
  }
  return states;
}

std::vector<TaskState> ClusterCoordinator::task_states() const { return implementation_->task_states(); }

}  // namespace capstan
