// buffer.cpp -- memory of Buffers, kept for later ones.
#include "capstan/buffer.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "base/kept_buffers.hpp"
#include "base/topology.hpp"

namespace capstan::detail {
namespace {

/// malloc keeps smaller blocks itself.
constexpr std::size_t kSmallestKept = std::size_t{64} << 10;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

bool is_kept(std::size_t bytes) { return bytes >= kSmallestKept && bytes <= kMostKeptBytes; }

/// Rounds the sizes of blocks that may be kept to four steps between powers of two, so that one fits buffers
/// of slightly different sizes. The end of a block that no buffer has filled has no pages.
std::size_t block_bytes(std::size_t bytes) {
  const std::size_t step = is_kept(bytes)      ? std::bit_floor(bytes) / 4
                           : bytes < kHugePage ? kAlignment
                                               : kHugePage;
  return (bytes + step - 1) / step * step;
}

void* new_block(std::size_t bytes) {
  const std::size_t alignment = bytes % kHugePage == 0 ? kHugePage : kAlignment;
  void* const memory = std::aligned_alloc(alignment, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  if (bytes >= kHugePage) topology::advise_huge_pages({static_cast<std::byte*>(memory), bytes});
  return memory;
}

/// Blocks without a buffer. Thread-safe.
class FreeBlocks {
 public:
  FreeBlocks() { blocks_.reserve(kMostBlocks); }

  /// Returns the last freed block of this size, or null.
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(blocks_.rbegin(), blocks_.rend(),
                                    [&](const Block& block) { return block.bytes == bytes; });
    if (found == blocks_.rend()) return nullptr;
    void* const memory = found->memory;
    blocks_.erase(std::prev(found.base()));
    kept_ -= bytes;
    return memory;
  }

  /// Frees the oldest blocks to stay below the limits.
  void keep(void* memory, std::size_t bytes) noexcept {
    std::unique_lock lock(mutex_);
    while (blocks_.size() == kMostBlocks || kept_ + bytes > kMostKeptBytes) {
      const Block oldest = blocks_.front();
      blocks_.erase(blocks_.begin());
      kept_ -= oldest.bytes;
      lock.unlock();  // the kernel takes milliseconds to free a large block
      std::free(oldest.memory);
      lock.lock();
    }
    blocks_.push_back({memory, bytes});
    kept_ += bytes;
  }

  std::size_t bytes() {
    const std::lock_guard lock(mutex_);
    return kept_;
  }

 private:
  static constexpr std::size_t kMostBlocks = 64;
  struct Block {
    void* memory;
    std::size_t bytes;
  };
  std::mutex mutex_;
  std::vector<Block> blocks_;  // by age, the oldest first
  std::size_t kept_ = 0;
};

/// Never destroyed: a Buffer may live until the process ends.
FreeBlocks& free_blocks() {
  static auto& blocks = *new FreeBlocks;
  return blocks;
}

}  // namespace

void* allocate_buffer(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) throw std::bad_alloc();
  const std::size_t block = block_bytes(bytes);
  void* const kept = is_kept(bytes) ? free_blocks().take(block) : nullptr;
  return kept != nullptr ? kept : new_block(block);
}

void free_buffer(void* memory, std::size_t bytes) noexcept {
  if (is_kept(bytes)) {
    free_blocks().keep(memory, block_bytes(bytes));
  } else {
    std::free(memory);
  }
}

}  // namespace capstan::detail

namespace capstan {

std::size_t kept_buffer_bytes() { return detail::free_blocks().bytes(); }

}  // namespace capstan
