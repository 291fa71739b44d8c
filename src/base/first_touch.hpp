// first_touch.hpp -- memory that becomes real: checked before the system has to kill somebody for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan {

/// What can still be used on this machine and in this control group, in bytes; much where nobody can tell.
std::uint64_t memory_left();

/// How much may still be used without taking what others need. Throws Error(resource_exhausted) when that is
/// less than what is wanted.
std::uint64_t check_memory_left(std::uint64_t wanted);

/// Writes zeros to memory that nobody has touched yet. Its pages lie near the calling thread, and are huge
/// ones where the system has them. Linux promises memory that it does not have and kills a process when the
/// promise falls due: so this looks before each piece. Throws Error(resource_exhausted); what it has touched
/// by then is the caller's to give back.
void touch_first(std::span<std::byte> memory);

}  // namespace capstan
