// reserved_memory.cpp -- reserves by mmap, and frees by madvise.
#include "transport/memory/reserved_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/topology.hpp"
#include "capstan/error.hpp"

namespace capstan::transport {
namespace {

constexpr std::uintptr_t kPage = 4096;

/// Zeroes memory that other threads may be reading. Stores aligned 8-byte words, so that no reader sees a
/// partly zeroed word, and single bytes at the unaligned ends.
void zero(std::uintptr_t begin, std::uintptr_t end) noexcept {
  constexpr std::uintptr_t kWord = sizeof(std::uint64_t);
  for (; begin % kWord != 0 && begin < end; ++begin)
    __atomic_store_n(reinterpret_cast<std::uint8_t*>(begin), 0, __ATOMIC_RELAXED);
  for (; end - begin >= kWord; begin += kWord)
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(begin), 0, __ATOMIC_RELAXED);
  for (; begin < end; ++begin) __atomic_store_n(reinterpret_cast<std::uint8_t*>(begin), 0, __ATOMIC_RELAXED);
}

class ReservedRegion final : public Region {
 public:
  ReservedRegion(std::span<std::byte> memory, FileLocation location)
      : memory_(memory), location_(std::move(location)) {}
  std::span<std::byte> memory() noexcept override { return memory_; }
  RegionKey key() const override {
    return {reinterpret_cast<std::uint64_t>(memory_.data()), memory_.size(), {}, location_};
  }

 private:
  std::span<std::byte> memory_;
  FileLocation location_;
};

}  // namespace

std::shared_ptr<std::byte> reserve_memory(std::size_t bytes) {
  void* const at =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    throw Error(Code::resource_exhausted, "cannot reserve " + std::to_string(bytes) +
                                              " bytes of addresses: " + std::strerror(errno) +
                                              "; see ulimit -v and vm.overcommit_memory");
  }
  topology::advise_huge_pages({static_cast<std::byte*>(at), bytes});
  return {static_cast<std::byte*>(at), [bytes](std::byte* memory) { munmap(memory, bytes); }};
}

void release_memory(std::span<std::byte> memory) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = begin + memory.size();
  const std::uintptr_t first = std::min((begin + kPage - 1) / kPage * kPage, end);
  const std::uintptr_t last = std::max(end / kPage * kPage, first);
  zero(begin, first);
  zero(last, end);
  // MADV_REMOVE frees pages of a PersistentMemory. It fails for private memory, which needs MADV_DONTNEED.
  auto* const pages = reinterpret_cast<void*>(first);
  if (first == last || madvise(pages, last - first, MADV_REMOVE) == 0) return;
  if (madvise(pages, last - first, MADV_DONTNEED) != 0) zero(first, last);
}

std::unique_ptr<Region> reserved_region(std::span<std::byte> memory, const FileLocation& location) {
  topology::advise_huge_pages(memory);
  return std::make_unique<ReservedRegion>(memory, location);
}

}  // namespace capstan::transport
