// pair_messages.hpp -- active messages between the ranks of `capstan doctor`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace capstan::launch::doctor {

/// The receiver connects to the sender, if needed, and replies outside of the handler.
inline constexpr std::uint16_t kConnectRequest = 1;
inline constexpr std::uint16_t kPing = 2;   // replied to in the handler
inline constexpr std::uint16_t kReply = 3;  // the reply to kConnectRequest and kPing
inline constexpr std::uint16_t kPiece = 4;  // dropped by the receiver; measures the bandwidth

/// Time limit for a reply of the other rank of a pair.
inline constexpr std::chrono::seconds kPairTimeout{10};

/// Size of the region that measures bandwidth: larger than the caches of a core, smaller than the /dev/shm
/// of a container.
inline constexpr std::size_t kMeasuredBytes = std::size_t{8} << 20;

}  // namespace capstan::launch::doctor
