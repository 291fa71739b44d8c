// path.hpp -- the paths from a client to a ps: which one is chosen, and which ones --require-transport
// accepts.
#pragma once

#include <cstdint>
#include <string_view>

#include "transport/fabric.hpp"

namespace capstan::client {

/// How a client reaches a ps. Chosen when the client connects to it.
enum class Path : std::uint8_t {
  in_process,  // the ps is a thread of this process: its store is called
  mapped,      // its memory is mapped here: loads and stores
  rma,         // an adapter reads and writes its memory
  messages,    // active messages, which its CPU serves
};
std::string_view to_string(Path path) noexcept;

/// Returns how to open the window onto a ps's board, by the setting "window". If it is mapped, so is the
/// path.
transport::WindowPath window_path(std::string_view wanted) noexcept;
/// Returns the path to a ps whose board is not mapped.
Path path_without_mapping(std::string_view wanted, bool hardware_rma) noexcept;

/// Returns true if `required`, the setting "require-transport", accepts a path. Emulated RMA is not RDMA.
bool good_enough(std::string_view required, Path path, bool same_host, bool hardware_rma) noexcept;

}  // namespace capstan::client
