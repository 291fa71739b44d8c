// heap.cpp -- bump allocation from slabs.
#include "ps/shard/heap.hpp"

#include <cstring>
#include <string>

#include "capstan/error.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint64_t kHeapPage = 4096;

}  // namespace

Piece Heap::allocate(std::uint64_t bytes) {
  const std::uint64_t size = (bytes + kHeapPage - 1) / kHeapPage * kHeapPage;
  const auto add_region = [this](std::uint64_t length) {
    add(allocate_(length), false);
    return regions_.size() - 1;
  };
  if (size > slab_bytes_ / 2) {
    const std::uint64_t region = add_region(size);
    return {region, 0, regions_[region]->memory().data()};
  }
  if (open_slab_ == kNone || used_ + size > slab_bytes_) {
    open_slab_ = add_region(slab_bytes_);
    used_ = 0;
  }
  const Piece piece{open_slab_, used_, regions_[open_slab_]->memory().data() + used_};
  used_ += size;
  return piece;
}

Piece Heap::reserve(std::uint64_t bytes) {
  add(reserve_(bytes), true);
  return {regions_.size() - 1, 0, regions_.back()->memory().data()};
}

void Heap::roll_back(const Mark& mark) noexcept {
  // The next piece must be zeroed.
  if (mark.open_slab != kNone) {
    const std::uint64_t end = open_slab_ == mark.open_slab ? used_ : slab_bytes_;
    std::memset(regions_[mark.open_slab]->memory().data() + mark.used, 0, end - mark.used);
  }
  while (regions_.size() > mark.regions) {
    if (!reserved_.back()) bytes_ -= regions_.back()->memory().size();
    regions_.pop_back();
    reserved_.pop_back();
  }
  open_slab_ = mark.open_slab;
  used_ = mark.used;
}

void Heap::add(std::unique_ptr<transport::Region> region, bool reserved) {
  if (!reserved) bytes_ += region->memory().size();
  regions_.push_back(std::move(region));
  reserved_.push_back(reserved);
}

Piece Heap::at(std::uint64_t region, std::uint64_t offset) const {
  return {region, offset, regions_.at(region)->memory().data() + offset};
}

transport::RegionKey Heap::key(std::uint64_t region) const {
  if (region >= regions_.size()) {
    throw Error(Code::not_found,
                "cannot export region " + std::to_string(region) + ": it does not exist on this ps");
  }
  return regions_[region]->key();
}

}  // namespace capstan::ps
