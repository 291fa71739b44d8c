// tcp_bootstrap.hpp -- the start of a job whose tasks know nothing but a cluster description: they meet at
// the coordinator's address.
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
  std::uint64_t cluster = 0;  // a fingerprint of what all must have been told

  const StartTask& self() const { return tasks.at(static_cast<std::size_t>(rank)); }
};

/// The coordinator is rank 0, then come the ps, the workers and the evaluator, each in the order of their
/// numbers. The token is CAPSTAN_JOB_TOKEN (64 hexadecimal digits); without it, one that follows from the
/// coordinator's address, and is no secret. Throws Error(invalid_argument) for what validate_cluster refuses,
/// a cluster without a chief, or without its port, and a task that is not in it.
Meeting meeting_of(const ClusterResolver& resolver, const Settings& settings);

/// What a task says to the coordinator, again and again. The answer has no bytes while others are missing,
/// then a Table, whose rank is for the task to set; and none to who has it.
struct StartCall {
  std::uint64_t build = 0;  // first, so that other builds are known by it
  std::uint64_t cluster = 0;
  std::int32_t rank = 0;
  std::int32_t has_table = 0;
  std::string name;
  std::vector<std::byte> hello;  // a Hello
};

/// Waits for all, and says on standard error for whom. Throws Error: deadline_exceeded, the same on all tasks
/// that are there; what make_members throws; failed_precondition for a task that was told another cluster.
Table meet(const Meeting& meeting, const HelloSource& hello, std::chrono::milliseconds timeout);

}  // namespace capstan::cluster
