// loop.hpp -- a fabric between threads of one process: local mode, and tests with ranks as threads.
#pragma once

#include <memory>

#include "transport/fabric.hpp"

namespace capstan::transport {

/// What the fabrics of one process share. Thread-safe.
class LoopHub {
 public:
  LoopHub();
  ~LoopHub();
  LoopHub(const LoopHub&) = delete;
  LoopHub& operator=(const LoopHub&) = delete;

  /// A new fabric on this hub. It may outlive the hub object.
  std::unique_ptr<Fabric> open();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace capstan::transport
