// start.hpp -- how the processes of a job find each other: by MPI, or by a cluster description.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/settings.hpp"
#include "capstan/resolvers.hpp"
#include "cluster/membership/member.hpp"
#include "cluster/supervisor/agent.hpp"

namespace capstan::cluster {

struct Start {
  /// Exchanges addresses with the other ranks. Throws Error.
  std::function<Table(const HelloSource&, std::chrono::milliseconds timeout)> exchange;
  std::string name;  ///< name of this process in messages until it has the table
  bool has_launcher;
  std::shared_ptr<const ClusterResolver> resolver;  ///< null if a launcher started the ranks
  std::function<void()> finalize = {};              ///< called after the exchange
};

/// Starts a task of the cluster that `resolver` describes. Throws what rendezvous_of throws.
Start start_at(const ClusterResolver& resolver, const Settings& settings);

/// Reads the variables of the launcher and TF_CONFIG. Returns nothing if this process alone is the job.
/// Throws Error(invalid_argument or failed_precondition) for variables that contradict each other.
std::optional<Start> choose_start(const Settings& settings);

/// Returns the options of an agent that performs `start`.
AgentOptions agent_options(const Settings& settings, const Start& start);

}  // namespace capstan::cluster
