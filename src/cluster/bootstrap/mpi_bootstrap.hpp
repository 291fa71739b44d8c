// mpi_bootstrap.hpp -- the exchange of addresses over MPI at the start of a job.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "cluster/membership/member.hpp"
#include "cluster/supervisor/agent.hpp"
#include "mpi/communicator.hpp"

namespace capstan::cluster {

/// Gathers the hello of every rank at rank 0, which creates the members or finds that the ranks do not match,
/// and sends all the result. Collective over `communicator`, on which tags 17249 to 17251 must be unused.
/// Rank 0 reports missing ranks on standard error, and gives up after `timeout`. Throws the same Error on all
/// ranks that are present: deadline_exceeded with the names of the missing ones, or what make_members throws.
Table exchange(const mpi::Communicator& communicator, const HelloSource& hello,
               std::chrono::milliseconds timeout);

/// The same over a duplicate of a program's communicator, on which the program may receive any tag.
Table exchange_within(const mpi::Communicator& communicator, const HelloSource& hello,
                      std::chrono::milliseconds timeout);

/// Initializes MPI for this purpose only. Also throws Error(failed_precondition) if MPI has another number of
/// ranks than the launcher started. After it has returned a table, finalize_world() must be called.
Table exchange_in_world(const HelloSource& hello, std::chrono::milliseconds timeout);

/// MPI_Finalize, which waits for all other ranks. PMIx 4.2 of Open MPI 4.1 may crash in it: one of its
/// threads uses memory that PMIx_Finalize has freed.
void finalize_world() noexcept;

/// Returns the number of ranks that the launcher started, from the variables of Open MPI, MPICH, PMIx and
/// Slurm; nothing if the process was started alone.
std::optional<int> launched_ranks();
/// Returns this process's number among them; 0 if it was started alone.
int launched_rank();

/// Called by a process that is about to be a job of its own. Throws Error(failed_precondition) if it is one
/// of several tasks of a Slurm step that has no MPI plugin.
void refuse_lonely_step();

/// Returns this process's hello. `build` is the XXH3 of the program, and of libcapstan.so if that is a file
/// of its own. The caller sets `roles`.
Hello make_hello();

}  // namespace capstan::cluster
