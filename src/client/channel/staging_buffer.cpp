// staging_buffer.cpp -- allocates slots, which are aligned like GPU allocations and do not wrap around.
#include "client/channel/staging_buffer.hpp"

namespace capstan::client {
namespace {

constexpr std::uint64_t kAlignment = 256;

}  // namespace

std::optional<protocol::BufferSlot> StagingBuffer::take(std::uint64_t bytes, std::uint64_t applied) {
  for (; !uses_.empty() && uses_.front().tail <= applied; uses_.pop_front()) free_from_ = uses_.front().head;
  const std::uint64_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::uint64_t to_end = kBytes - head_ % kBytes;
  const std::uint64_t begin = size <= to_end ? head_ : head_ + to_end;
  if (uses_.empty()) free_from_ = begin;
  if (begin + size - free_from_ > kBytes) return std::nullopt;
  head_ = begin + size;
  return protocol::BufferSlot{number_, 0, begin % kBytes};
}

}  // namespace capstan::client
