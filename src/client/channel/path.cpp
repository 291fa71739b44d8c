// path.cpp -- chooses a path by the settings and the capabilities of the transport.
#include "client/channel/path.hpp"

namespace capstan::client {

std::string_view to_string(Path path) noexcept {
  switch (path) {
    case Path::in_process:
      return "in process";
    case Path::mapped:
      return "mapped memory";
    case Path::rma:
      return "remote memory access";
    case Path::messages:
      return "active messages";
  }
  return "unknown";
}

transport::WindowPath window_path(std::string_view wanted) noexcept {
  if (wanted == "mapped") return transport::WindowPath::mapped;
  if (wanted == "rma" || wanted == "am") return transport::WindowPath::rma;
  return transport::WindowPath::automatic;
}

Path path_without_mapping(std::string_view wanted, bool hardware_rma) noexcept {
  return wanted == "rma" || (wanted != "am" && hardware_rma) ? Path::rma : Path::messages;
}

bool good_enough(std::string_view required, Path path, bool same_host, bool hardware_rma) noexcept {
  if (required == "any" || path == Path::mapped || path == Path::in_process) return true;
  return required == "rdma" && path == Path::rma && hardware_rma && !same_host;
}

}  // namespace capstan::client
