// exit_codes.hpp -- exit codes of a rank that cannot throw to the program. docs/errors.md lists all exit
// codes; launch/exit_codes.hpp has those of the `capstan` program. Never renumber.
#pragma once

namespace capstan {

/// The worker was fenced; its agent restarts it.
inline constexpr int kExitFenced = 1;
/// A system call failed, or a child ended without an exit code.
inline constexpr int kExitEnvironment = 3;
/// A ps or the coordinator is dead or unreachable.
inline constexpr int kExitLostRank = 4;
/// The agent cannot execute its program, or the program does not exist; as in a shell.
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNoProgram = 127;

}  // namespace capstan
