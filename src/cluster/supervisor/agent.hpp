// agent.hpp -- the process that watches a rank's other processes, starts a worker again, and owns the exit
// code.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/file_descriptor.hpp"
#include "cluster/membership/member.hpp"
#include "transport/memory/persistent_memory.hpp"

namespace capstan::cluster {

/// What a child has of its agent: two pipes, or the table, when it was started in place of one that died.
class AgentLink {
 public:
  using Kept = std::shared_ptr<transport::PersistentMemory>;

  AgentLink(FileDescriptor from_agent, FileDescriptor to_agent, Kept kept)
      : from_agent_(std::move(from_agent)), to_agent_(std::move(to_agent)), kept_(std::move(kept)) {}
  /// In place of the child that has died, for the `started_again`-th time.
  AgentLink(Table table, Kept kept, int started_again)
      : table_(std::move(table)), kept_(std::move(kept)), started_again_(started_again) {}

  /// Sends this rank's hello up and waits for the table. Throws Error: deadline_exceeded, or what was found
  /// wrong with the ranks.
  Table exchange(const Hello& hello, std::chrono::milliseconds timeout);
  /// Outlives the child.
  const Kept& persistent_memory() const noexcept { return kept_; }
  /// 0 in the first child.
  int started_again() const noexcept { return started_again_; }

 private:
  FileDescriptor from_agent_;
  FileDescriptor to_agent_;
  std::optional<Table> table_;
  Kept kept_;
  int started_again_ = 0;
};

/// This rank's hello, once its program has sent it: asked again and again until then.
using HelloSource = std::function<std::optional<Hello>()>;

struct AgentOptions {
  /// What finds the others at the start, in a process of its own; throws Error. It has a deadline.
  std::function<Table(const HelloSource&)> exchange;
  /// Called in that process when the agent has the table. A crash in it does no harm.
  std::function<void()> finalize = {};
  /// The agent takes the coordinator's file out of it when the coordinator has ended, however; "" for none.
  std::string run_dir = {};
  /// "rank 3", for messages before there is a table.
  std::string name = {};
  /// The parent process ends the ranks of the job together: without it, this one ends.
  bool has_launcher = true;
};

/// Splits the process in three. Returns in the child, which runs the program. A second child does the
/// exchange and ends; the parent is the agent, which forwards signals, waits for the child and exits. It
/// makes no MPI call, so it may fork at any time: it restarts the child of a worker that dies or of a ps that
/// is killed, up to Table::restarts times, and of a coordinator that is killed if
/// Table::coordinator_may_return. Each restart is another return from this function, in the new child. A
/// child that has announced that it is the last (heartbeat.hpp) is not restarted. REQUIRES: no other thread
/// runs.
///
/// A child that beats (pulse.hpp), and then does not for as long as it has said, is killed: it is stopped, or
/// hangs, and would keep the launcher waiting when the job is over. A worker is started again then.
///
/// How the agent's exit code follows from its child's end:
///  * coordinator that is not started again: the child's own code, or 128 + signal: it decides about the job.
///  * worker that is not started again, evaluator, spare: 0 however the child ended once the cluster was up,
///  with a line that says so: the job goes on.
///  * ps that is not started again: the child's own code; when it was lost, or has lost the coordinator, 4,
///  after a pause in which the coordinator ends the job by itself; 0 when it was killed for its silence,
///  since the coordinator gives such a ps up before, and where there are spares, one of which has its place.
///  * any, killed by a signal before the cluster was up: 4, with a line that says so.
/// A child never outlives its agent.
AgentLink split_into_agent_and_child(const AgentOptions& options);

}  // namespace capstan::cluster
