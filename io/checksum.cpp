// checksum.cpp -- libxxhash's streaming state.
#include "io/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace capstan::io {

void Checksum::FreeState::operator()(XXH3_state_s* state) const noexcept { (void)XXH3_freeState(state); }

Checksum::Checksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  (void)XXH3_64bits_reset(state_.get());  // fails on a null state only
}

void Checksum::add(const void* data, std::size_t bytes) {
  (void)XXH3_64bits_update(state_.get(), data, bytes);
}

std::string Checksum::hex() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

std::string checksum_of(std::string_view bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace capstan::io
