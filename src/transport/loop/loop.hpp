// loop.hpp -- a fabric between threads of one process, for embedded clusters and tests.
#pragma once

#include <memory>

#include "transport/fabric.hpp"

namespace capstan::transport {

/// State that the fabrics of one process share. Thread-safe.
class LoopHub {
 public:
  LoopHub();
  ~LoopHub();
  LoopHub(const LoopHub&) = delete;
  LoopHub& operator=(const LoopHub&) = delete;

  /// Returns a new fabric on this hub, which may outlive the hub object.
  std::unique_ptr<Fabric> open();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace capstan::transport
