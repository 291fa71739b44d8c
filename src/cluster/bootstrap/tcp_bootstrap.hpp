// tcp_bootstrap.hpp -- the start of a job from a cluster description: its tasks meet at the coordinator's
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
  /// "ps 1 at n4:2222"
  std::string name() const;
};

struct Meeting {
  std::vector<StartTask> tasks;  // by rank
  int rank = 0;                  // of this process
  std::string listen_at;         // of the coordinator
  Token token{};
  std::uint64_t cluster = 0;  // hash of the description, equal on all tasks

  const StartTask& self() const { return tasks.at(static_cast<std::size_t>(rank)); }
};

/// The coordinator is rank 0, followed by ps, workers and evaluator, each by number. The token is
/// CAPSTAN_JOB_TOKEN (64 hexadecimal digits); without it, it is derived from the coordinator's address and no
/// secret. Throws Error(invalid_argument) for what validate_cluster refuses, a cluster without a chief or its
/// port, and a task that is not in it.
Meeting meeting_of(const ClusterResolver& resolver, const Settings& settings);

/// What a task sends to the coordinator, repeatedly. The answer is empty while others are missing, then a
/// Table, whose rank the task sets; a task that has confirmed the table gets no answer.
struct StartCall {
  std::uint64_t build = 0;  // first, so that another build can be recognized
  std::uint64_t cluster = 0;
  std::int32_t rank = 0;
  std::int32_t has_table = 0;
  std::string name;
  std::vector<std::byte> hello;  // a Hello
};

/// Waits for all tasks, and reports the missing ones on standard error. Throws Error: deadline_exceeded, the
/// same on all tasks that are present; what make_members throws; failed_precondition for a task with another
/// description.
Table meet(const Meeting& meeting, const HelloSource& hello, std::chrono::milliseconds timeout);

}  // namespace capstan::cluster
