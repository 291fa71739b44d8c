// shard_rounding.hpp -- how an update of a shard rounds its results.
#pragma once

#include <cstdint>

#include "gpu/rounding.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::ps {

/// Stochastic rounding has a different seed for each `update` of each shard, so that errors do not add up.
inline gpu::Rounding rounding_of(const protocol::CreateShard& shard, std::uint64_t update) noexcept {
  const std::uint64_t number = std::uint64_t{shard.variable} << 32 | shard.shard;
  return {shard.storage.stochastic_rounding, (number + 1) * 0xD1B54A32D192ED03U + update};
}

}  // namespace capstan::ps
