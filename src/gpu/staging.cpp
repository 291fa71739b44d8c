// staging.cpp -- two alternating buffers to the GPU; one buffer for all bytes from it.
#include "gpu/staging.hpp"

#include <algorithm>

namespace capstan::gpu {
namespace {

constexpr std::size_t kBuffers = 2;

}  // namespace

Staging::Staging(int device, std::size_t piece_bytes) : device_(device), piece_bytes_(piece_bytes) {}

void Staging::to_gpu(const Stream& stream, std::byte* to, std::uint64_t bytes, std::uint64_t unit,
                     const Fill& fill) {
  const std::uint64_t piece_bytes = std::max<std::uint64_t>(1, piece_bytes_ / unit) * unit;
  for (std::uint64_t first = 0; first < bytes;) {
    const std::size_t count = std::min(piece_bytes, bytes - first);
    if (buffers_.size() < kBuffers) buffers_.push_back({{}, Event(device_)});
    Buffer& buffer = buffers_[next_buffer_++ % kBuffers];
    buffer.copied.wait();
    if (buffer.memory.size() < count) buffer.memory = PinnedMemory(count);
    fill(first, count, buffer.memory.data());
    copy(stream, to + first, buffer.memory.data(), count);
    buffer.copied.record(stream);
    first += count;
  }
}

const std::byte* Staging::from_gpu(const Stream& stream, const std::byte* from, std::uint64_t bytes) {
  await(pending_ * piece_bytes_);  // waits for the copies of an earlier call that was not awaited
  if (received_.size() < bytes) {
    received_ = {};
    received_ = PinnedMemory(bytes);
  }
  arrived_ = 0;
  pending_ = (bytes + piece_bytes_ - 1) / piece_bytes_;
  while (arrivals_.size() < pending_) arrivals_.emplace_back(device_);
  for (std::uint64_t piece = 0; piece < pending_; ++piece) {
    const std::uint64_t first = piece * piece_bytes_;
    copy(stream, received_.data() + first, from + first,
         std::min<std::uint64_t>(piece_bytes_, bytes - first));
    arrivals_[piece].record(stream);
  }
  return received_.data();
}

void Staging::await(std::uint64_t bytes) {
  for (; arrived_ < pending_ && arrived_ * piece_bytes_ < bytes; ++arrived_) arrivals_[arrived_].wait();
}

}  // namespace capstan::gpu
