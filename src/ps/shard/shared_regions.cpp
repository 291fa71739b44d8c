// shared_regions.cpp -- allocates regions consecutively in an unnamed file.
#include "ps/shard/shared_regions.hpp"

#include <array>

#include "base/first_touch.hpp"
#include "base/log.hpp"
#include "capstan/error.hpp"
#include "transport/memory/reserved_memory.hpp"

namespace capstan::ps {

SharedRegions::SharedRegions(transport::Fabric& fabric) : fabric_(fabric) {
  try {
    memory_ = transport::PersistentMemory::create();
  } catch (const Error& error) {
    log::debug("allocating regions from the fabric: {}", error.what());
  }
}

std::unique_ptr<transport::Region> SharedRegions::reserve(std::uint64_t bytes) {
  if (!memory_) return fabric_.reserve(bytes);
  const std::uint64_t at = (next_ + transport::kHugePage - 1) / transport::kHugePage * transport::kHugePage;
  auto region = transport::reserved_region(memory_->map(at, bytes), memory_->location(at));
  next_ = at + (bytes + 4095) / 4096 * 4096;
  return region;
}

std::unique_ptr<transport::Region> SharedRegions::allocate(std::uint64_t bytes) {
  if (!memory_) return fabric_.allocate(bytes);
  const std::span<std::byte> memory = memory_->map(next_, bytes);
  try {
    touch_first(memory);
    auto region = fabric_.adopt(memory, memory_->location(next_));
    next_ += (bytes + 4095) / 4096 * 4096;
    return region;
  } catch (const Error& error) {
    memory_->unmap(next_, std::array{memory});
    if (error.code() != Code::unimplemented) throw;
    memory_.reset();  // the fabric cannot adopt memory: the ranks are threads of one process
    return fabric_.allocate(bytes);
  }
}

}  // namespace capstan::ps
