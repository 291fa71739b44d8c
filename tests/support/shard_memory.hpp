// shard_memory.hpp -- the memory of a test program's variables: on the GPU if SHARD_MEMORY=device.
#pragma once

#include <cstdlib>
#include <string_view>

#include "capstan/variable_options.hpp"

namespace capstan {

inline ShardMemory shard_memory() {
  const char* memory = std::getenv("SHARD_MEMORY");
  return memory != nullptr && std::string_view(memory) == "device" ? ShardMemory::device : ShardMemory::host;
}

}  // namespace capstan
