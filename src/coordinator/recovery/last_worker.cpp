// last_worker.cpp -- waits for a worker while there is none.
#include "coordinator/recovery/last_worker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace capstan::coordinator {

void LastWorker::note_loss(const std::string& worker) {
  if (runtime_.membership().alive(Role::worker) > 0) return;
  last_ = worker;
  if (may_return()) {
    deadline_ = Clock::now() + runtime_.settings().duration("worker-wait");
  } else {
    queue_.break_down(Code::unavailable, worker + " has ended, and no worker is left");
  }
}

/// Returns true if a worker may still join or be restarted. Counts only restarts whose process has reached
/// this one: also true if the last restart of a worker has failed before.
bool LastWorker::may_return() const {
  if (may_join_()) return true;
  const cluster::Table& table = runtime_.table();
  const cluster::Membership& members = runtime_.membership();
  const std::vector<int> ranks = members.worker_ranks();
  return std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
    return members.state(rank) == cluster::MemberState::joining ||
           table.times_restarted(rank) < table.restarts;
  });
}

bool LastWorker::joins_after_ps() const {
  const cluster::Membership& members = runtime_.membership();
  const std::vector<int> ranks = members.worker_ranks();
  return !members.all_alive(Role::ps) && std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
    return members.state(rank) == cluster::MemberState::joining;
  });
}

void LastWorker::check() {
  const cluster::Membership& members = runtime_.membership();
  if (members.alive(Role::worker) > 0) {
    deadline_.reset();
  } else if (!deadline_) {
    // In a restarted coordinator, all workers may have been lost before the restart.
    if (!queue_.broken()) note_loss(runtime_.name_of(members.worker_ranks().back()));
  } else if (Clock::now() >= *deadline_ && !joins_after_ps()) {
    deadline_.reset();
    queue_.break_down(
        Code::unavailable,
        fmt::format("{} has ended, no worker is left, and none has joined within {} ms (--worker-wait)",
                    last_, runtime_.settings().duration("worker-wait").count()));
  }
}

}  // namespace capstan::coordinator
