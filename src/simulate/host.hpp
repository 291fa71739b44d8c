// host.hpp -- cores and links that the ranks of a host share.
#pragma once

#include <cstddef>

#include "simulate/queue.hpp"
#include "simulate/shared_link.hpp"

namespace capstan::simulate {

/// Properties of a host.
struct HostShape {
  std::size_t cores = 1;
  double bandwidth = 12.5e9;  ///< bytes/s in each direction, of all links together
  double latency = 2e-6;      ///< seconds
};

struct Host {
  /// `random` draws the thread that gets an idle core.
  Host(Simulation& simulation, const HostShape& shape, RandomSource& random)
      : cores(simulation, shape.cores, &random),
        out(simulation, shape.bandwidth, 0),
        in(simulation, shape.bandwidth, shape.latency) {}

  Queue cores;
  SharedLink out;
  SharedLink in;
};

}  // namespace capstan::simulate
