// agent.hpp -- the process that watches a rank's other processes, starts a worker again, and owns the exit
// code.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "cluster/member.hpp"

namespace capstan::cluster {

/// What a child has of its agent: two pipes, or the table, when it was started in place of one that died.
class AgentLink {
 public:
  AgentLink(int from_agent, int to_agent) : from_agent_(from_agent), to_agent_(to_agent) {}
  explicit AgentLink(Table table) : table_(std::move(table)) {}

  /// Sends this rank's hello up and waits for the table. Throws Error: deadline_exceeded, or what was found
  /// wrong with the ranks.
  Table exchange(const Hello& hello, std::chrono::milliseconds timeout);

 private:
  int from_agent_ = -1;
  int to_agent_ = -1;
  std::optional<Table> table_;
};

/// Splits the process in three. Returns in the child, which runs the program. A second child does the MPI
/// part and ends; the parent is the agent, which forwards signals, waits for the child and exits. It calls
/// nothing of MPI, so that it may fork at any time: the child of a worker that dies is started again, up to
/// Table::restarts times, and that is a return from here, too. REQUIRES: no other thread runs.
///
/// How the agent's exit code follows from its child's end:
///  * coordinator: the child's own code, or 128 + signal: it decides about the job.
///  * worker that is not started again, evaluator: 0 however the child ended once the cluster was up, with a
///  line that says so: the job goes on.
///  * ps: the child's own code; when it was lost, or has lost the coordinator, 4, after a pause in which the
///  coordinator ends the job by itself.
///  * any, killed by a signal before the cluster was up: 4, with a line that says so.
/// A child never outlives its agent.
///
/// `run_dir`: the agent takes the coordinator's file out of it when the coordinator has ended, however; ""
/// for none.
AgentLink split_into_agent_and_child(const std::string& run_dir);

}  // namespace capstan::cluster
