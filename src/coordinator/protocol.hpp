// protocol.hpp -- what coordinator and workers say to each other.
#pragma once

#include <cstdint>
#include <vector>

#include "capstan/per_worker.hpp"
#include "shard/descriptor.hpp"

namespace capstan::coordinator {

/// Header of kRunClosure. The payload is a RunClosure.
struct RunHeader {
  std::uint64_t id = 0;
  std::uint64_t function = 0;
};

struct RunClosure {
  std::vector<shard::VariableDescriptor> new_variables;  // that this worker has not been told of
  std::vector<detail::ResourceRecipe> new_resources;
  std::vector<std::byte> arguments;
};

/// Header of kClosureDone. The payload is the result, or the text of the error.
struct DoneHeader {
  std::uint64_t id = 0;
  std::uint64_t code = 0;  // of capstan::Code
};

}  // namespace capstan::coordinator
