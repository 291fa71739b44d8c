// shard_memory.hpp -- where the variables of a test program lie: SHARD_MEMORY=device in the environment.
#pragma once

#include <cstdlib>
#include <string_view>

#include "capstan/variable_options.hpp"

namespace capstan {

inline ShardMemory shard_memory() {
  const char* wanted = std::getenv("SHARD_MEMORY");
  return wanted != nullptr && std::string_view(wanted) == "device" ? ShardMemory::device : ShardMemory::host;
}

}  // namespace capstan
