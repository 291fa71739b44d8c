// supervised_program.hpp -- supervision of a program that cannot be forked, such as a Python interpreter.
//
// Cluster::join forks an agent, which is unsafe once other threads run. A binding for another language calls
// exec_under_agent before Cluster::join instead:
//
//   if (detail::needs_agent(options, command)) detail::exec_under_agent(options, command);
//   cs::Cluster cluster = cs::Cluster::join(options);
//
// The program then runs a second time from its beginning, as a child of capstan-agent, and Cluster::join
// finds the agent in the environment.
#pragma once

#include <string>
#include <vector>

#include "capstan/cluster.hpp"
#include "capstan/detail/export.hpp"

namespace capstan::detail {

/// Environment variable that a program inherits from capstan-agent. Cluster::join removes it. A binding
/// removes it from copies of the environment, such as Python's os.environ.
inline constexpr const char* kAgentLinkVariable = "CAPSTAN_AGENT_LINK";

/// Returns true if an agent supervises this process, before and after Cluster::join.
CAPSTAN_API bool is_supervised() noexcept;

/// Returns true if Cluster::join with these options would fork an agent: this process is a rank of a job, is
/// not supervised yet, and `supervise` is on. `command` is the command line of this process, from which
/// --capstan-NAME=VALUE is read. Throws Error like Cluster::join.
CAPSTAN_API bool needs_agent(const ClusterOptions& options, const std::vector<std::string>& command);

/// Replaces this process by capstan-agent, with the same pid, which starts `command` as its child. Threads
/// and memory of this process are lost; buffers of stdio are flushed. Settings of the agent are `options`,
/// the CAPSTAN_* variables, the file of CAPSTAN_CONFIG and --capstan-NAME=VALUE of `command`, by their usual
/// precedence; `command` is passed unchanged. The agent exits with 127 if the program does not exist, and
/// with 126 if it cannot be executed.
///
/// Throws Error: failed_precondition if needs_agent returns false, or if this process has initialized MPI,
/// which the agent does itself; not_found or permission_denied if capstan-agent cannot be executed. The file
/// that CAPSTAN_AGENT names is executed, or else capstan-agent beside Capstan's library, or else the
/// installed one.
[[noreturn]] CAPSTAN_API void exec_under_agent(const ClusterOptions& options,
                                               const std::vector<std::string>& command);

}  // namespace capstan::detail
