// exit_codes.hpp -- exit codes of the `capstan` program. docs/errors.md lists them: never renumber.
#pragma once

#include <string_view>

#include "capstan/error.hpp"

namespace capstan::launch {

enum class Exit : int {
  ok = 0,
  failed = 1,              // a failure without a code of its own
  usage = 2,               // invalid option, setting or input; a retry fails the same way
  environment = 3,         // MPI, UCX, the file system or the machine failed
  rank_unavailable = 4,    // a ps or the coordinator is dead or unreachable
  damaged_checkpoint = 5,  // a checksum, a size or a format does not match
  requeue = 85,            // stopped early with a checkpoint; the same command with --resume continues
  timed_out = 124,         // --timeout of `capstan run` expired, as in timeout(1)
  not_executable = 126,    // the program of `capstan run` cannot be executed, as in a shell
  no_program = 127,        // the program of `capstan run` does not exist, as in a shell
  interrupted = 130,       // Ctrl-C on `capstan run`, as in a shell
};

Exit exit_code(Code code) noexcept;

/// One line of advice for the user; "" where the error message needs none.
std::string_view hint(Code code) noexcept;

/// A short description of an exit code of `capstan`; "" for any other number.
std::string_view describe_exit_code(int exit_code) noexcept;

/// Returns true for failures that only this rank sees. Other failures occur on all ranks, and only rank 0
/// reports them.
bool is_rank_local(Code code) noexcept;

}  // namespace capstan::launch
