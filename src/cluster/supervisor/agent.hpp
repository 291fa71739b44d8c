// agent.hpp -- the process that supervises a rank's program, restarts it and owns the rank's exit code.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cluster/membership/member.hpp"
#include "cluster/supervisor/agent_link.hpp"

namespace capstan::cluster {

/// Returns this rank's hello, or nothing until its program has sent it. Polled.
using HelloSource = std::function<std::optional<Hello>()>;

struct AgentOptions {
  /// Finds the other ranks at the start of the job, in a process of its own. Has a deadline; throws Error.
  std::function<Table(const HelloSource&)> exchange;
  /// Called in the process of `exchange` once the agent has the table. The job continues if the call crashes.
  std::function<void()> finalize = {};
  /// Run directory, from which the agent removes the run file when the coordinator has ended; "" for none.
  std::string run_dir = {};
  /// Name of this rank in messages until the table exists, such as "rank 3".
  std::string name = {};
  /// The parent process is a launcher, which ends all ranks of the job together; if it dies, the agent exits.
  bool has_launcher = true;
};

/// Splits the process in three. Returns in the child, which runs the program. A second child performs the
/// exchange and exits. The parent is the agent: it forwards signals, waits for the child, and exits; it never
/// returns. The agent has one thread and makes no MPI or UCX call, so it can fork at any time. REQUIRES: no
/// other thread runs. Throws Error(internal).
///
/// The agent restarts a worker that dies, and a ps that is killed by a signal, up to Table::restarts times;
/// and a coordinator that is killed, if Table::coordinator_may_return. Each restart is another return from
/// this function, in the new child. A child that has called Heartbeat::forbid_restart is not restarted.
///
/// The agent kills a child whose heartbeat (heartbeat.hpp) stops, since a launcher would wait for it after
/// the end of the job. If it is a worker, it is restarted.
///
/// The agent's exit code depends on the role of a child that has ended and is not restarted:
///  * coordinator: the child's exit code, or 128 + signal. It is the job's result.
///  * worker, evaluator, spare: 0, with a line on standard error, since the job continues without it.
///  * ps: the child's exit code; 4 if a signal killed it or it lost the coordinator, after a pause in which
///    the coordinator can end the job; 0 if a spare replaces it, or if the agent killed it because its
///    heartbeat had stopped.
///  * any role, before the members were known: the child's exit code, or 4 if a signal killed it.
/// A child never outlives its agent.
AgentLink split_into_agent_and_child(const AgentOptions& options);

}  // namespace capstan::cluster
