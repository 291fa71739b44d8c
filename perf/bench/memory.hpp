// memory.hpp -- plain memory of this process, for the loops that measure bounds.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace capstan::perf {

/// Grows to the largest size requested and never shrinks, so that no measurement pays for page faults.
class Array {
 public:
  /// Returns `floats` floats in touched pages; growth discards the contents. Throws std::bad_alloc.
  std::span<float> get(std::size_t floats, bool huge_pages) {
    if (floats > size_ || huge_pages != huge_) {
      constexpr std::size_t kHugePage = std::size_t{2} << 20;
      const std::size_t bytes = (floats * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
      memory_.reset(static_cast<float*>(std::aligned_alloc(kHugePage, bytes)));
      if (memory_ == nullptr) throw std::bad_alloc();
      static_cast<void>(::madvise(memory_.get(), bytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
      size_ = bytes / sizeof(float);
      huge_ = huge_pages;
      for (std::size_t i = 0; i < size_; ++i) memory_.get()[i] = 0;
    }
    return {memory_.get(), floats};
  }

 private:
  struct Free {
    void operator()(float* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<float, Free> memory_;
  std::size_t size_ = 0;
  bool huge_ = false;
};

/// Compiler barrier: all memory counts as read here, so that no preceding loop is eliminated.
inline void use_memory() { asm volatile("" ::: "memory"); }

}  // namespace capstan::perf
