// peer_process.hpp -- a second process on this host, to probe how UCX connects two processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/file_descriptor.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::launch {

/// Result of connecting to the second process.
struct PeerRoute {
  bool mapped = false;  ///< its memory was mapped, and a load returned the expected pattern
  bool hardware_rma = false;
  std::string transports;
};

/// A child process with its own fabric and memory region. The destructor ends it and waits for it.
class PeerProcess {
 public:
  /// Forks. The child runs `before_serving` first, in which tests delay it. Throws Error(internal). REQUIRES:
  /// no other thread runs and UCX is unused, since neither survives a fork.
  explicit PeerProcess(const std::function<void()>& before_serving = [] {});
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Connects, exchanges a message, and opens a window onto the memory of the child. Throws Error: internal
  /// if UCX cannot connect within `timeout`, deadline_exceeded if the child does not open UCX within
  /// `timeout`, unavailable if `path` is `mapped` and the memory cannot be mapped.
  PeerRoute probe(transport::WindowPath path, std::chrono::milliseconds timeout = std::chrono::seconds(10));

 private:
  pid_t child_ = -1;
  FileDescriptor from_child_;
  FileDescriptor to_child_;  // closing it makes the child exit
};

}  // namespace capstan::launch
