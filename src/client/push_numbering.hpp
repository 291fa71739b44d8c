// push_numbering.hpp -- numbers the pushes of a closure, so that a second run of it counts each of them once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/push_format.hpp"

namespace capstan::client {

/// The closure that a client runs; `id` is 0 outside of closures.
struct RunningClosure {
  std::uint64_t id = 0;
  bool again = false;  // an earlier run of it may have pushed already
};

/// Counts pushes by replica, and the entries of the current push by ps. A second run of a closure gives the
/// same numbers to the same pushes; a ps skips the entries that it has applied (ClosureLedger). Entries that
/// are sent outside of closures stay unnumbered. Used by the client's thread.
class PushNumbering {
 public:
  explicit PushNumbering(int ps) : parts_(static_cast<std::size_t>(ps)) {}

  /// Assigns the pushes that follow to replica 0 of `closure`.
  void begin(const RunningClosure& closure) {
    closure_ = closure;
    replica_ = 0;
    call_ = 0;
    calls_.clear();
  }
  /// Assigns the pushes that follow to `replica`. Each replica has its own count, because the pushes of
  /// several replicas are sent in any order.
  void push_as(int replica) noexcept { replica_ = static_cast<std::uint16_t>(replica); }
  /// Begins the next push. A push that is skipped takes a number too, so that the numbers of later ones do
  /// not depend on it.
  void next_push() {
    ++pushes_;
    if (calls_.size() <= replica_) calls_.resize(replica_ + std::size_t{1});
    call_ = calls_[replica_]++;
  }
  /// Numbers the next entry that the current push sends to the ps with index `ps`.
  void number(protocol::PushHeader& header, int ps) noexcept {
    if (closure_.id == 0) return;
    Parts& parts = parts_[static_cast<std::size_t>(ps)];
    if (parts.push != pushes_) parts = {pushes_, 0};
    header.closure = closure_.id;
    header.again = closure_.again ? 1 : 0;
    header.replica = replica_;
    header.call = call_;
    header.part = parts.sent++;
  }

 private:
  struct Parts {
    std::uint64_t push = 0;  // the value of `pushes_` that `sent` belongs to
    std::uint32_t sent = 0;
  };

  RunningClosure closure_;
  std::uint16_t replica_ = 0;
  std::uint32_t call_ = 0;            // number of the current push among those of its replica
  std::uint64_t pushes_ = 0;          // of this client; never reset
  std::vector<std::uint32_t> calls_;  // pushes of the closure, by replica
  std::vector<Parts> parts_;          // entries of the current push, by ps
};

}  // namespace capstan::client
