// staging.cpp -- two pieces on the way there; on the way back as many as there are.
#include "gpu/staging.hpp"

#include <algorithm>

namespace capstan::gpu {
namespace {

constexpr std::size_t kPieces = 2;

}  // namespace

Staging::Staging(int device, std::size_t piece_bytes) : device_(device), piece_bytes_(piece_bytes) {}

void Staging::to_gpu(const Stream& stream, std::byte* to, std::uint64_t bytes, std::uint64_t unit,
                     const Fill& fill) {
  const std::uint64_t most = std::max<std::uint64_t>(1, piece_bytes_ / unit) * unit;
  for (std::uint64_t first = 0; first < bytes;) {
    const std::size_t count = std::min(most, bytes - first);
    if (pieces_.size() < kPieces) pieces_.push_back({{}, Event(device_)});
    Piece& piece = pieces_[turn_++ % kPieces];
    piece.copied.wait();
    if (piece.memory.size() < count) piece.memory = PinnedMemory(count);
    fill(first, count, piece.memory.data());
    copy(stream, to + first, piece.memory.data(), count);
    piece.copied.record(stream);
    first += count;
  }
}

const std::byte* Staging::from_gpu(const Stream& stream, const std::byte* from, std::uint64_t bytes) {
  await(coming_ * piece_bytes_);  // of an earlier call that was not waited for
  if (whole_.size() < bytes) {
    whole_ = {};
    whole_ = PinnedMemory(bytes);
  }
  arrived_ = 0;
  coming_ = (bytes + piece_bytes_ - 1) / piece_bytes_;
  while (arrivals_.size() < coming_) arrivals_.emplace_back(device_);
  for (std::uint64_t piece = 0; piece < coming_; ++piece) {
    const std::uint64_t first = piece * piece_bytes_;
    copy(stream, whole_.data() + first, from + first, std::min<std::uint64_t>(piece_bytes_, bytes - first));
    arrivals_[piece].record(stream);
  }
  return whole_.data();
}

void Staging::await(std::uint64_t bytes) {
  for (; arrived_ < coming_ && arrived_ * piece_bytes_ < bytes; ++arrived_) arrivals_[arrived_].wait();
}

}  // namespace capstan::gpu
