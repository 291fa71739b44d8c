// push_ring.hpp -- positions in a push ring, and entries written into it.
#pragma once

#include <cstdint>

#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "transport/bytes.hpp"
#include "transport/fabric.hpp"

namespace capstan::client {

/// The pusher's end of a ring in a ps's memory (format: protocol/push_format.hpp). Waiting and publishing
/// are left to the owner. Used by the thread that owns the data fabric.
class PushRing {
 public:
  /// `capacity` is the maximum number of bytes in flight; `applied` the bytes of the ring that the ps has
  /// applied.
  PushRing(std::uint64_t capacity, std::uint64_t applied) noexcept
      : capacity_(capacity), tail_(applied), published_(applied), applied_(applied) {}

  /// `window` is onto the region of `location` and must outlive the ring.
  void open(const protocol::RingLocation& location, transport::Window& window) noexcept {
    location_ = location;
    window_ = &window;
  }
  bool is_open() const noexcept { return window_ != nullptr; }

  std::uint64_t capacity() const noexcept { return capacity_; }
  std::uint64_t tail() const noexcept { return tail_; }
  std::uint64_t applied() const noexcept { return applied_; }
  bool published() const noexcept { return published_ == tail_; }
  void note_published() noexcept { published_ = tail_; }
  void note_applied(std::uint64_t applied) noexcept { applied_ = applied; }

  /// Returns true if `bytes` more bytes may be in flight.
  bool fits(std::uint64_t bytes) const noexcept { return tail_ + bytes - applied_ <= capacity_; }
  /// Bytes between the tail and the end of the ring's memory. A larger entry needs pad() first. REQUIRES,
  /// here and below: is_open().
  std::uint64_t to_end() const noexcept { return location_.bytes - tail_ % location_.bytes; }
  /// Skips to the start of the ring's memory. REQUIRES: fits(to_end()).
  void pad() {
    protocol::PushHeader padding;
    padding.bytes = to_end();
    put(0, transport::as_bytes(padding));
    advance(padding.bytes);
  }
  /// Address of the entry at the tail; nullptr if the ring is not mapped, so that only put() can write to
  /// it.
  std::byte* mapped() const noexcept {
    std::byte* const memory = window_->mapped();
    return memory == nullptr ? nullptr : memory + offset();
  }
  /// Writes `bytes` at offset `at` of the entry at the tail.
  void put(std::uint64_t at, transport::Bytes bytes) { window_->put(offset() + at, bytes); }
  /// Completes the entry at the tail, of `bytes` bytes.
  void advance(std::uint64_t bytes) noexcept { tail_ += bytes; }

 private:
  std::uint64_t offset() const noexcept { return location_.offset + tail_ % location_.bytes; }

  std::uint64_t capacity_;
  // Positions in bytes since the ring was opened:
  std::uint64_t tail_;       // written
  std::uint64_t published_;  // visible to the ps
  std::uint64_t applied_;    // as last read
  protocol::RingLocation location_;
  transport::Window* window_ = nullptr;
};

}  // namespace capstan::client
