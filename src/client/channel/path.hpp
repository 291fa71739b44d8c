// path.hpp -- the ways from a client to a ps, which of them is taken, and which --require-transport accepts.
#pragma once

#include <cstdint>
#include <string_view>

#include "transport/fabric.hpp"

namespace capstan::client {

/// How a client reaches a ps. Chosen once, when they meet.
enum class Path : std::uint8_t {
  in_process,  // the ps is a thread of this process: its store is called
  mapped,      // its memory is mapped here: loads and stores
  rma,         // an adapter reads and writes its memory
  messages,    // active messages, which its CPU serves
};
std::string_view to_string(Path path) noexcept;

/// How the window onto a ps's board is to be opened, by the setting "window". Mapped, it decides the path.
transport::WindowPath window_path(std::string_view wanted) noexcept;
/// The path where it is not mapped.
Path path_without_mapping(std::string_view wanted, bool hardware_rma) noexcept;

/// Whether `required`, the setting "require-transport", accepts a path. Emulated RMA is no RDMA.
bool good_enough(std::string_view required, Path path, bool same_host, bool hardware_rma) noexcept;

}  // namespace capstan::client
