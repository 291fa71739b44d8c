// tcp_bootstrap.hpp -- starts a job from a cluster description: its tasks connect to the coordinator's
// address.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "capstan/resolvers.hpp"
#include "cluster/bootstrap/join_handshake.hpp"
#include "cluster/membership/member.hpp"
#include "cluster/supervisor/agent.hpp"

namespace capstan {
class ClusterResolver;
class Settings;
}  // namespace capstan

namespace capstan::cluster {

struct StartTask {
  Role role = Role::worker;
  int index = 0;
  std::string address;
  /// Returns a name for messages, such as "ps 1 at n4:2222".
  std::string name() const;
};

/// The tasks of a job, and how they connect to the coordinator.
struct Rendezvous {
  std::vector<StartTask> tasks;  // by rank
  int rank = 0;                  // of this process
  std::string listen_at;         // address on which the coordinator listens
  Token token{};
  std::uint64_t cluster = 0;  // hash of the description, equal on all tasks

  const StartTask& self() const { return tasks.at(static_cast<std::size_t>(rank)); }
};

/// Numbers the tasks: the coordinator is rank 0, followed by the ps, workers and evaluator, each by index.
/// The token is CAPSTAN_JOB_TOKEN (64 hexadecimal digits); if it is not set, the token is derived from the
/// coordinator's address and is not secret. Throws the errors of validate_cluster, and
/// Error(invalid_argument) for a cluster without a chief or its port, or without this process's task.
Rendezvous rendezvous_of(const ClusterResolver& resolver, const Settings& settings);

/// Request that a task repeats until it has a Table. The coordinator's reply is empty while tasks are
/// missing, and then the Table, in which the task sets the rank. A task that has confirmed the table gets no
/// reply.
struct StartCall {
  std::uint64_t build = 0;  // first field, so that a process of another build is recognized
  std::uint64_t cluster = 0;
  std::int32_t rank = 0;
  std::int32_t has_table = 0;
  std::string name;
  std::vector<std::byte> hello;  // a Hello
};

/// Waits for all tasks, and reports missing ones on standard error. Throws Error: deadline_exceeded, with the
/// same message on all tasks that are present; failed_precondition for a task with another description; and
/// the errors of make_members.
Table join_rendezvous(const Rendezvous& rendezvous, const HelloSource& hello,
                      std::chrono::milliseconds timeout);

}  // namespace capstan::cluster
