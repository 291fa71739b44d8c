// members.hpp -- a table of members for tests that need no fabric.
#pragma once

#include <string>

#include "cluster/membership/membership.hpp"

namespace capstan {

/// Returns a table in which rank 0 is the coordinator; the ps follow, then the workers, then the spares.
inline cluster::Table table_of(int ps, int workers, int spares = 0) {
  cluster::Table table;
  const auto add = [&](Role role, int count) {
    for (int index = 0; index < count; ++index) {
      const int rank = static_cast<int>(table.members.size());
      table.members.push_back({rank, role, index, "node" + std::to_string(rank), 100 + rank, {}, {}});
    }
  };
  add(Role::coordinator, 1);
  add(Role::ps, ps);
  add(Role::worker, workers);
  add(Role::spare, spares);
  return table;
}

/// Returns a worker that was restarted for the `time`-th time; with index -1, the `time`-th worker that
/// joined late.
inline cluster::Member joining_worker(const cluster::Table& table, int index, int time = 1) {
  const int rank = index < 0 ? table.rank_of_late(time) : table.rank_of_restart(index, time);
  return {rank, Role::worker, table.index_of(rank), "node" + std::to_string(rank), 200 + rank, {}, {}};
}

}  // namespace capstan
