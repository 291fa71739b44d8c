// offer.hpp -- what UCX offers this process, under the UCX_* variables as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capstan::transport {

/// Transports by UCX's names, each with its device: "rc_mlx5/mlx5_0:1", "tcp/eth0", "posix/memory". Can be
/// sent.
struct UcxOffer {
  std::string version;
  std::string allowed_transports;      ///< UCX_TLS
  std::string allowed_devices;         ///< UCX_NET_DEVICES
  std::vector<std::string> network;    ///< reach other hosts, but for a loopback device
  std::vector<std::string> in_memory;  ///< reach processes on this host
  std::vector<std::string> other;      ///< GPUs, and this process itself

  bool operator==(const UcxOffer&) const = default;
};

/// Opens UCX and looks. Throws Error when UCX finds no usable device.
UcxOffer ucx_offer();

/// Kinds among `transports` that reach other hosts, each once: "rc_mlx5", "tcp".
std::vector<std::string> network_kinds(const std::vector<std::string>& transports);

/// True when one of the transports that `names` lists is one whose adapter accesses remote memory by itself.
bool names_hardware_rma(std::string_view names);

/// "tcp/lo", which reaches this host alone.
bool is_loopback(std::string_view transport);

}  // namespace capstan::transport
