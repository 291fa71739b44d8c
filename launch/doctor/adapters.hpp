// adapters.hpp -- InfiniBand and RoCE adapters and link rates, from sysfs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// One port of an adapter.
struct AdapterPort {
  std::string name;        ///< "mlx5_0:1", as in UCX_NET_DEVICES
  std::string state;       ///< "4: ACTIVE"
  std::string rate;        ///< "200 Gb/sec (4X HDR)"
  std::string link_layer;  ///< "InfiniBand" or "Ethernet"

  bool active() const { return state.find("ACTIVE") != std::string::npos; }
};

/// Reads the ports in class/infiniband below `sys` ("/sys"), sorted by name.
std::vector<AdapterPort> read_adapters(const std::filesystem::path& sys);

/// Rate in Gbit/s of a device in the notation of UCX, "mlx5_0:1" or "eth0"; nullopt if sysfs has none.
std::optional<double> link_rate(const std::filesystem::path& sys, const std::string& device);

Finding check_adapters(const Request& request);
Finding judge_adapters(const std::vector<AdapterPort>& ports);

}  // namespace capstan::launch::doctor
