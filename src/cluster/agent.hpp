// agent.hpp -- the half of a rank that does the MPI part, watches the other half, and owns the exit code.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

#include "cluster/member.hpp"

namespace capstan::cluster {

/// The child's ends of the two pipes to its agent.
class AgentLink {
 public:
  AgentLink(int from_agent, int to_agent) : from_agent_(from_agent), to_agent_(to_agent) {}

  /// Sends this rank's hello up and waits for the table. Throws Error: deadline_exceeded, or what the agent
  /// found wrong with the ranks.
  Table exchange(const Hello& hello, std::chrono::milliseconds timeout);

 private:
  int from_agent_;
  int to_agent_;
};

/// Splits the process. Returns in the child; the agent never returns: it leads MPI through the exchange,
/// forwards signals, waits for the child and exits. REQUIRES: no other thread runs.
///
/// How the agent's exit code follows from its child's end:
///  * coordinator: the child's own code, or 128 + signal: it decides about the job.
///  * worker, evaluator: 0 however the child ended once the cluster was up, with a line that says so: the job
///  goes on.
///  * ps: the child's own code; when it was lost, or has lost the coordinator, 4, after a pause in which the
///  coordinator ends the job by itself.
///  * any, killed by a signal before the cluster was up: 4, with a line that says so.
/// A child never outlives its agent.
AgentLink split_into_agent_and_child();

}  // namespace capstan::cluster
