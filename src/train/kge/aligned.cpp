// aligned.cpp -- see aligned.hpp.
#include "train/kge/aligned.hpp"

#include <sys/mman.h>

#include <new>

namespace capstan::kge {

float* AlignedFloats::allocate(std::size_t size) {
  constexpr std::size_t kCacheLine = 64;
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  std::size_t bytes = size * sizeof(float);
  const std::size_t unit = bytes >= kHugePage ? kHugePage : kCacheLine;
  bytes = (bytes + unit - 1) / unit * unit;
  void* const memory = std::aligned_alloc(unit, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  // Huge pages reduce TLB misses on random rows of a large table; a failure only costs speed.
  if (unit == kHugePage) static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));
  return static_cast<float*>(memory);
}

}  // namespace capstan::kge
