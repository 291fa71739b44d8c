// exit_codes.hpp -- what the `capstan` program tells the shell. docs/errors.md lists them: never renumber.
#pragma once

#include <string_view>

#include "capstan/error.hpp"

namespace capstan::launch {

enum class Exit : int {
  ok = 0,
  failed = 1,              // anything that has no number of its own
  usage = 2,               // an option, a setting or the input is wrong; another try ends the same way
  environment = 3,         // MPI, UCX, the file system or the machine said no
  lost_rank = 4,           // a ps or the coordinator is gone or no longer answers
  damaged_checkpoint = 5,  // a file is not what it says it is
  requeue = 85,            // not done: a checkpoint is saved, and the same command with --resume goes on
  timed_out = 124,         // of `capstan run`: the --timeout, as timeout(1)
};

Exit exit_code(Code code) noexcept;

/// What to do next, in one line; "" if the message says it all.
std::string_view hint(Code code) noexcept;

/// What an exit code of ours says, in a few words; "" for any other.
std::string_view meaning(int exit_code) noexcept;

/// The failure is this rank's own. Of the others every rank sees the same, so that one rank is enough to
/// tell.
bool own_failure(Code code) noexcept;

}  // namespace capstan::launch
