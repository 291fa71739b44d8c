// mapped_read.hpp -- reads a mapped shard that its ps may be changing.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fence.hpp"
#include "capstan/variable.hpp"
#include "client/route.hpp"

namespace capstan::client {

/// Runs `copy`, which reads the mapped memory of the shard. Returns false if a consistent read failed because
/// of concurrent writers; the ps must serve it then. Throws Error(unavailable) if the ps is dead.
template <class Copy>
bool read_mapped(const ShardRoute& shard, ReadMode mode, const Copy& copy) {
  constexpr int kConsistentTries = 32;
  if (mode == ReadMode::relaxed) {
    copy();
    shard.connection->require_alive();
    return true;
  }
  const std::atomic_ref<const std::uint64_t> version(*shard.version);
  for (int tries = 0; tries < kConsistentTries; ++tries) {
    const std::uint64_t before = version.load(std::memory_order_acquire);
    if (before % 2 != 0) continue;
    copy();
    thread_fence(std::memory_order_acquire);
    if (version.load(std::memory_order_relaxed) != before) continue;
    shard.connection->require_alive();
    return true;
  }
  return false;
}

}  // namespace capstan::client
