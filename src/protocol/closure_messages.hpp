// closure_messages.hpp -- what coordinator and workers say to each other.
#pragma once

#include <cstdint>
#include <vector>

#include "capstan/detail/per_worker.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::protocol {

/// Header of kRunClosures. The payload: of each closure a RunHeader and its arguments, which
/// `argument_bytes` counts with what stands before them; then an Announcement of `announcement_bytes`, if
/// any.
struct BatchHeader {
  std::uint64_t closures = 0;
  std::uint64_t announcement_bytes = 0;
  std::int64_t incarnation = 0;  // of the coordinator: how often it has been started again
  /// Functions for any worker that failed on this one, as far as the coordinator knows. A worker that has
  /// reported more gives the batch back: it was sent before the coordinator knew of the error.
  std::uint64_t failures = 0;
};

/// What a worker has not been told of yet and its closures may name.
struct Announcement {
  std::vector<protocol::VariableDescriptor> variables;
  std::vector<detail::ResourceRecipe> resources;
};

struct RunHeader {
  std::uint64_t id = 0;
  std::uint64_t argument_bytes = 0;
  std::uint32_t function = 0;
  std::uint8_t stays = 0;      // 1: for this worker alone
  std::uint8_t again = 0;      // 1: a worker that has died may have begun it
  std::uint8_t timed = 0;      // 1: not to be begun later than the nanoseconds (int64) before its arguments
  std::uint8_t completes = 0;  // 1: not cancelled while it runs
};

/// kClosuresDone has no header. The payload: of each closure a DoneHeader and its result, or the text of its
/// error.
struct DoneHeader {
  std::uint64_t id = 0;
  std::uint64_t result_bytes = 0;
  std::uint64_t nanoseconds = 0;  // that it took
  std::uint64_t code = 0;         // of capstan::Code
};

/// Header of kFreeResources: objects that no closure names any more, by number.
struct FreeHeader {
  std::int64_t incarnation = 0;  // of the coordinator, as that of a BatchHeader
};

/// Header of kGiveBack: revokes closures for any worker that this one has not begun. The worker answers with
/// kGivenBack and their ids, the last one first; without being asked when one of its functions has failed.
/// The function that it runs is cancelled if its number is below `before`, or is `cancel`, unless it is one
/// that completes.
struct GiveBackHeader {
  std::uint64_t most = 0;    // this many, from the last one on
  std::uint64_t before = 0;  // and each one with a lower number: an error has cancelled them
  std::uint64_t cancel = 0;  // number of a closure whose deadline has passed
};

}  // namespace capstan::protocol
