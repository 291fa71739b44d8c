// word.hpp -- 64-bit words of memory that several processes share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace capstan::transport {

/// Accesses the word at `address` atomically. REQUIRES: `address` is aligned to 8 bytes.
inline std::atomic_ref<std::uint64_t> word_at(std::byte* address) noexcept {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(address));
}

}  // namespace capstan::transport
