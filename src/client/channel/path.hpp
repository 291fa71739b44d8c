// path.hpp -- chooses the path from a client to a ps, and checks it against --require-transport.
#pragma once

#include <cstdint>
#include <string_view>

#include "transport/fabric.hpp"

namespace capstan::client {

/// Path from a client to a ps, chosen on connection.
enum class Path : std::uint8_t {
  in_process,  // the ps is a thread of this process: calls of its store
  mapped,      // mapped memory: loads and stores
  rma,         // remote memory access by an adapter
  messages,    // active messages, which the ps's CPU serves
};
std::string_view to_string(Path path) noexcept;

/// Returns how to open the window onto a ps's board, by the setting "window". If the window is mapped, so
/// is the path.
transport::WindowPath window_path(std::string_view wanted) noexcept;
/// Returns the path to a ps whose board is not mapped.
Path path_without_mapping(std::string_view wanted, bool hardware_rma) noexcept;

/// Returns true if the setting "require-transport" (`required`) accepts a path. Emulated RMA does not count
/// as RDMA.
bool good_enough(std::string_view required, Path path, bool same_host, bool hardware_rma) noexcept;

}  // namespace capstan::client
