// ps_board.hpp -- the board of a ps as one client reads and writes it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/fence.hpp"
#include "protocol/push_format.hpp"
#include "transport/bytes.hpp"
#include "transport/fabric.hpp"
#include "transport/memory/word.hpp"

namespace capstan::client {

/// Accesses a board that is mapped or reached by RMA. Used by the thread that owns the data fabric. Calls
/// that wait for the network throw Error: unavailable, deadline_exceeded (after `timeout`).
class PsBoard {
 public:
  /// `rank` is the rank of this client. REQUIRES: `window` is onto a board with this layout.
  PsBoard(std::unique_ptr<transport::Window> window, const protocol::BoardLayout& layout, int rank,
          std::chrono::milliseconds timeout)
      : window_(std::move(window)),
        layout_(layout),
        rank_(static_cast<std::uint64_t>(rank)),
        timeout_(timeout) {}

  bool mapped() const noexcept { return window_->mapped() != nullptr; }
  /// The transport::LivenessWord of the ps; nullptr if the board is not mapped.
  const std::byte* liveness_word() const noexcept {
    return mapped() ? window_->mapped() + layout_.liveness_word() : nullptr;
  }

  /// Makes the entries before `tail` visible to the ps. They arrive before the tail.
  void publish(std::uint64_t tail) {
    window_->fence();
    window_->put(layout_.tail(rank_), transport::as_bytes(tail));
  }
  /// Returns true if the ps sleeps, and clears its flag; the caller then must signal the doorbell. Call it
  /// after publish(): either the ps sees the tail before it sleeps, or this call sees the flag. REQUIRES:
  /// mapped().
  bool exchange_asleep() noexcept {
    thread_fence(std::memory_order_seq_cst);
    const auto asleep = transport::word_at(window_->mapped() + layout_.asleep());
    return asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0) != 0;
  }
  /// Bytes of this client's entries that the ps has applied, or protocol::kFenced. The rows that they
  /// changed are visible after the call.
  std::uint64_t applied() { return load(layout_.applied(rank_)); }

  /// Number of steps that all members of update group `group` have completed.
  std::uint64_t steps(std::uint32_t group) { return load(layout_.group(group)); }
  /// Adds to a counter and returns its previous value. REQUIRES: mapped().
  std::uint64_t fetch_add(std::uint64_t counter, std::uint64_t delta) {
    return transport::word_at(window_->mapped() + layout_.counter(counter)).fetch_add(delta);
  }

 private:
  std::uint64_t load(std::uint64_t offset) {
    if (mapped()) return transport::word_at(window_->mapped() + offset).load(std::memory_order_acquire);
    std::uint64_t word = 0;
    window_->get(offset, std::as_writable_bytes(std::span<std::uint64_t, 1>(&word, 1)), deadline());
    return word;
  }
  transport::Deadline deadline() const { return transport::deadline_in(timeout_); }

  std::unique_ptr<transport::Window> window_;
  protocol::BoardLayout layout_;
  std::uint64_t rank_;
  std::chrono::milliseconds timeout_;
};

}  // namespace capstan::client
