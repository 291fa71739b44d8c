// offer.hpp -- transports and devices that UCX offers this process, as UCX_* variables allow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capstan::transport {

/// Transports by UCX's names, each with its device: "rc_mlx5/mlx5_0:1", "tcp/eth0", "posix/memory".
/// Serializable.
struct UcxOffer {
  std::string version;
  std::string allowed_transports;      ///< UCX_TLS
  std::string allowed_devices;         ///< UCX_NET_DEVICES
  std::vector<std::string> network;    ///< transports to other hosts, and loopback devices
  std::vector<std::string> in_memory;  ///< transports to other processes on this host
  std::vector<std::string> other;      ///< transports to GPUs and within this process

  bool operator==(const UcxOffer&) const = default;
};

/// Opens UCX and queries it. Throws Error if UCX finds no usable device.
UcxOffer ucx_offer();

/// Returns the distinct kinds of `transports` that reach other hosts: "rc_mlx5", "tcp".
std::vector<std::string> network_kinds(const std::vector<std::string>& transports);

/// Returns true if one of `transports` accesses remote memory without the remote CPU.
bool has_hardware_rma(std::string_view transports);

/// Returns true for "tcp/lo", which reaches this host only.
bool is_loopback(std::string_view transport);

}  // namespace capstan::transport
