// keeper.hpp -- a child does what may end it, and the parent has the last word.
//
// MPI_Init ends a process that it cannot start in, UCX may crash, and a launcher ends all ranks when one of
// them dies: without a parent that knows what was found so far there would be no table, in just the cases
// that need one.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace capstan::launch::doctor {

/// Keeps bytes for the parent, should the child end before its time.
using Leave = std::function<void(std::span<const std::byte>)>;

/// What a child has left behind.
struct Remains {
  int exit_code = 0;  ///< 128 plus the signal, as a shell counts
  /// This process got SIGTERM; a child that still ran was killed, and not waited for.
  bool terminated = false;
  std::vector<std::vector<std::byte>> left;
};

/// Runs `work` in a child; it must end the child, not return. In the parent, returns when that has ended.
/// REQUIRES: no other thread runs. Throws Error(internal).
Remains keep(const std::function<void(const Leave&)>& work);

}  // namespace capstan::launch::doctor
