// mpi_bootstrap.hpp -- the one exchange that MPI does for us.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "cluster/membership/member.hpp"
#include "cluster/supervisor/agent.hpp"
#include "mpi/communicator.hpp"

namespace capstan::cluster {

/// Gathers every rank's hello at rank 0, which makes the members, or finds that they do not fit together, and
/// tells all. Collective over `communicator`, on which tags 17249 to 17251 must be free. While ranks are
/// missing rank 0 says so on standard error; after `timeout` it gives up. Throws the same Error on every rank
/// that is there: deadline_exceeded with the names of the others, or what make_members throws.
Table exchange(const mpi::Communicator& communicator, const HelloSource& hello,
               std::chrono::milliseconds timeout);

/// The same over a duplicate of a program's own communicator, on which it may receive any tag.
Table exchange_within(const mpi::Communicator& communicator, const HelloSource& hello,
                      std::chrono::milliseconds timeout);

/// Starts MPI for this purpose alone. Throws Error(failed_precondition), too, where MPI sees another number
/// of ranks than the launcher started. After a table, finalize_world() is to be called.
Table exchange_in_world(const HelloSource& hello, std::chrono::milliseconds timeout);

/// MPI_Finalize, which waits for all other ranks. PMIx 4.2 of Open MPI 4.1 may crash in it: a thread of its
/// own uses memory that PMIx_Finalize has freed.
void finalize_world() noexcept;

/// How many ranks a launcher says it has started with this one, from the variables that Open MPI, MPICH, PMIx
/// and Slurm set. Nothing when started alone.
std::optional<int> launched_ranks();
/// This one's number among them, from the same variables; 0 when started alone.
int launched_rank();

/// For a process that is about to be a whole job: throws Error(failed_precondition) when it is one of several
/// tasks of a Slurm step that were given no way to MPI.
void refuse_lonely_step();

/// This process's hello; `build` is the XXH3 of the binary on disk, and of libcapstan.so if that is
/// a file of its own; `roles` is left to the caller.
Hello make_hello();

}  // namespace capstan::cluster
