// network.hpp -- transfers between hosts.
#pragma once

#include <memory>
#include <utility>

#include "simulate/host.hpp"

namespace capstan::simulate {

/// Number of bytes of a transfer on the links of its two hosts. They differ if one simulated rank stands for
/// several.
struct TransferBytes {
  double sent = 0;
  double received = 0;
};

/// Sends bytes from one host to another through the outgoing link of the sender and the incoming one of the
/// receiver at the same time, and calls `arrived` when both have carried them. A transfer within a host takes
/// no time. Switches between the hosts do not limit a transfer.
inline void transfer(Host& from, Host& to, TransferBytes bytes, Simulation::Action arrived) {
  if (&from == &to) return arrived();
  const auto open = std::make_shared<int>(2);
  const auto end = [open, arrived = std::move(arrived)] {
    if (--*open == 0) arrived();
  };
  from.out.send(bytes.sent, end);
  to.in.send(bytes.received, end);
}

}  // namespace capstan::simulate
