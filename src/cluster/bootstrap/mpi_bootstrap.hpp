// mpi_bootstrap.hpp -- the exchange of addresses over MPI at the start of a job.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "cluster/membership/member.hpp"
#include "cluster/supervisor/agent.hpp"
#include "mpi/communicator.hpp"

namespace capstan::cluster {

/// Gathers the hello of every rank on rank 0, which creates the table of members and sends it to all ranks.
/// Collective over `communicator`, on which tags 17249 to 17251 must be unused. Rank 0 reports missing ranks
/// on standard error, and gives up after `timeout`. Throws the same Error on all ranks that are present:
/// deadline_exceeded with the names of the missing ones, or the errors of make_members.
Table exchange(const mpi::Communicator& communicator, const HelloSource& hello,
               std::chrono::milliseconds timeout);

/// Like exchange(), but over a duplicate of the program's communicator, so that the program may receive
/// messages with any tag.
Table exchange_within(const mpi::Communicator& communicator, const HelloSource& hello,
                      std::chrono::milliseconds timeout);

/// Initializes MPI, then calls exchange() over MPI_COMM_WORLD. Also throws Error(failed_precondition) if MPI
/// and the launcher disagree on the number of ranks. After it has returned a table, the caller must call
/// finalize_world().
Table exchange_in_world(const HelloSource& hello, std::chrono::milliseconds timeout);

/// MPI_Finalize, which waits for all other ranks. PMIx 4.2 of Open MPI 4.1 may crash in it: one of its
/// threads uses memory that PMIx_Finalize has freed.
void finalize_world() noexcept;

/// Returns the number of ranks that the launcher started, from the variables of Open MPI, MPICH, PMIx and
/// Slurm; nothing if the process was started alone.
std::optional<int> launched_ranks();
/// Returns the rank that the launcher gave this process; 0 if it was started alone.
int launched_rank();

/// Called by a process that is about to run as a job of its own. Throws Error(failed_precondition) if the
/// process is one of several tasks of a Slurm step that has no MPI plugin.
void require_mpi_in_slurm_step();

/// Returns this process's hello. `build` is the XXH3 of the program, and of libcapstan.so if that is a file
/// of its own. The caller sets `roles`.
Hello make_hello();

}  // namespace capstan::cluster
