// neighbour.hpp -- a second process on this host, to see how UCX reaches one.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/file_descriptor.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::launch {

/// What was found by connecting to it.
struct NeighbourWay {
  bool mapped = false;  ///< its memory could be read by a load, and held what it had written
  bool hardware_rma = false;
  std::string transports;
};

/// A child of this process with a fabric and a region of its own. It ends with this object.
class Neighbour {
 public:
  /// REQUIRES: no other thread runs, and UCX was not used before, since a child inherits neither well.
  Neighbour();
  ~Neighbour();
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  /// Connects, exchanges a message, and opens a window onto its memory. Throws Error: internal when UCX does
  /// not reach it, unavailable when `path` is `mapped` and its memory cannot be mapped.
  NeighbourWay try_to_reach(transport::WindowPath path);

 private:
  pid_t child_ = -1;
  FileDescriptor from_child_;
  FileDescriptor to_child_;  // its end is what the child waits for
};

}  // namespace capstan::launch
