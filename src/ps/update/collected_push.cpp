// collected_push.cpp -- a room for the most that may come, of which the rest is taken back.
#include "ps/update/collected_push.hpp"

#include <cstring>
#include <exception>
#include <utility>

#include "base/log.hpp"

namespace capstan::ps {

CollectedPush::CollectedPush(ShardGpu& gpu, std::uint64_t row_bytes, std::uint64_t most, Give give)
    : gpu_(gpu), row_bytes_(row_bytes), most_(most), give_(std::move(give)) {}

CollectedPush::~CollectedPush() {
  try {
    if (capacity_ != 0) gpu_.give_collected();
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
}

/// A row that two pushes name counts twice, and one that a push names twice counts once: so these are never
/// put together.
bool CollectedPush::goes_on(const Part& part) const {
  if (capacity_ == 0 || part.first) return false;
  if (part.rank != rank_ || part.step != given_.step || part.rows.empty() == sparse_) return false;
  if (!sparse_ && part.first_row != given_.first_row + given_.count) return false;
  const bool from_here = part.here != nullptr;
  if (from_here != (here_ != nullptr)) return false;
  if (!from_here && part.there != given_.gradient + given_.count * row_bytes_) return false;
  return given_.count + part.count <= capacity_;
}

void CollectedPush::begin(const Part& part) {
  gpu_.give_collected();
  sparse_ = !part.rows.empty();
  // Where bits are to be the same in every run, they must not depend on what had come when.
  const std::uint64_t capacity = part.last || gpu_.deterministic() ? part.count : most_;
  const std::uint64_t numbers = sparse_ ? ShardGpu::bytes_of_numbers(capacity) : 0;
  room_ = gpu_.room(numbers + (part.here != nullptr ? capacity * row_bytes_ : 0));
  here_ = part.here != nullptr ? room_.here + numbers : nullptr;
  given_ = {sparse_ ? room_.there : nullptr, part.first_row, 0,
            part.here != nullptr ? room_.there + numbers : part.there, part.step};
  rank_ = part.rank;
  capacity_ = capacity;
  gpu_.collect([this] { give(); });
}

void CollectedPush::add(const Part& part) {
  if (!goes_on(part)) begin(part);
  if (sparse_)
    std::memcpy(room_.here + given_.count * sizeof(std::uint32_t), part.rows.data(), part.rows.size_bytes());
  if (here_ != nullptr) std::memcpy(here_ + given_.count * row_bytes_, part.here, part.count * row_bytes_);
  given_.count += part.count;
  if (part.last || given_.count == capacity_) gpu_.give_collected();
}

void CollectedPush::give() {
  const std::uint64_t capacity = std::exchange(capacity_, 0);
  const std::uint64_t numbers = given_.count * sizeof(std::uint32_t);
  const std::uint64_t bytes = given_.count * row_bytes_;
  const gpu::Stream& stream = gpu_.stream();
  if (here_ == nullptr) {
    if (sparse_) {
      gpu_.take_back(ShardGpu::bytes_of_numbers(capacity) - ShardGpu::bytes_of_numbers(given_.count));
      gpu::copy(stream, room_.there, room_.here, numbers);
    }
  } else if (given_.count == capacity) {
    gpu::copy(stream, room_.there, room_.here, static_cast<std::uint64_t>(here_ - room_.here) + bytes);
  } else {
    gpu_.take_back((capacity - given_.count) * row_bytes_);
    if (sparse_) gpu::copy(stream, room_.there, room_.here, numbers);
    gpu::copy(stream, given_.gradient, here_, bytes);
  }
  give_(given_);
}

}  // namespace capstan::ps
