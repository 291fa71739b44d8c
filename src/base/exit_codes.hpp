// exit_codes.hpp -- what a process of a job ends with where nobody is left to throw to. docs/errors.md lists
// them all, launch/exit_codes.hpp those of the `capstan` program: never renumber.
#pragma once

namespace capstan {

/// A worker that counts as dead: its agent starts it again.
inline constexpr int kExitFenced = 1;
/// The machine said no, or a child ended without a code.
inline constexpr int kExitEnvironment = 3;
/// A ps or the coordinator is gone or no longer answers.
inline constexpr int kExitLostRank = 4;

}  // namespace capstan
