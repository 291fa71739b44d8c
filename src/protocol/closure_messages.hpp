// closure_messages.hpp -- messages between the coordinator and workers.
#pragma once

#include <cstdint>
#include <vector>

#include "capstan/detail/per_worker.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::protocol {

/// Header of kRunClosures. The payload has a RunHeader and the arguments of each closure, and then an
/// Announcement of `announcement_bytes`, if any.
struct BatchHeader {
  std::uint64_t closures = 0;
  std::uint64_t announcement_bytes = 0;
  std::int64_t incarnation = 0;  // number of restarts of the coordinator
  /// Number of failed closures of this worker that the coordinator knows of, except closures for one worker.
  /// A worker that has reported more returns the batch, because the coordinator sent it before it knew of the
  /// error.
  std::uint64_t failures = 0;
};

/// Objects that closures may refer to and that the worker does not know yet.
struct Announcement {
  std::vector<protocol::VariableDescriptor> variables;
  std::vector<detail::ResourceRecipe> resources;
};

struct RunHeader {
  std::uint64_t id = 0;
  std::uint64_t argument_bytes = 0;  // including a deadline before the arguments
  std::uint32_t function = 0;
  std::uint8_t pinned = 0;         // 1: runs only on this worker
  std::uint8_t again = 0;          // 1: a dead worker may have started it
  std::uint8_t timed = 0;          // 1: its start deadline in nanoseconds (int64) precedes the arguments
  std::uint8_t uncancellable = 0;  // 1: never cancelled while it runs
};

/// kClosuresDone has no header. The payload has a DoneHeader and the result or error text of each closure.
struct DoneHeader {
  std::uint64_t id = 0;
  std::uint64_t result_bytes = 0;
  std::uint64_t nanoseconds = 0;  // run time
  std::uint64_t code = 0;         // a capstan::Code
};

/// Header of kFreeResources. The payload has the numbers of objects that no closure refers to any longer.
struct FreeHeader {
  std::int64_t incarnation = 0;  // as in BatchHeader
};

/// Header of kGiveBack: revokes closures that may run on any worker and that this one has not started. The
/// worker replies kGivenBack with their ids, the last one first. It also sends kGivenBack without a request
/// when one of its functions fails. Cancels the running function if its number is below `cancelled_below` or
/// equals `expired_id`, unless RunHeader::uncancellable is set.
struct GiveBackHeader {
  std::uint64_t max_count = 0;        // revokes up to this many, starting with the last one
  std::uint64_t cancelled_below = 0;  // revokes all closures with lower numbers, which an error has cancelled
  std::uint64_t expired_id = 0;       // a closure whose deadline has passed
};

}  // namespace capstan::protocol
