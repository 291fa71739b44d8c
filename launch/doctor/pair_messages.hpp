// pair_messages.hpp -- active messages between ranks of a doctor.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace capstan::launch::doctor {

inline constexpr std::uint16_t kQuestion =
    1;                                       // to be answered, by a connection that may have to be made first
inline constexpr std::uint16_t kPing = 2;    // to be answered at once
inline constexpr std::uint16_t kAnswer = 3;  // to both
inline constexpr std::uint16_t kPiece = 4;   // to be dropped: what counts is how fast they come

/// For what the other rank of a pair is asked.
inline constexpr std::chrono::seconds kPairTimeout{10};

/// Of the memory of a rank to which bandwidth is measured. More than a core's caches, less than a container's
/// /dev/shm.
inline constexpr std::size_t kMeasuredBytes = std::size_t{8} << 20;

}  // namespace capstan::launch::doctor
