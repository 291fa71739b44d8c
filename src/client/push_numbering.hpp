// push_numbering.hpp -- numbers the pushes of a closure, so that a second run does not apply them again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/push_format.hpp"

namespace capstan::client {

/// The closure that a client runs; `id` is 0 outside of closures.
struct RunningClosure {
  std::uint64_t id = 0;
  bool again = false;  // an earlier run may have pushed
};

/// Counts pushes by replica, and the entries of the current push by ps. A second run of a closure gives the
/// same pushes the same numbers, and a ps skips the entries that it has applied (ClosureLedger). Outside of
/// closures, an entry has the number of its push only. Used by the client's thread.
class PushNumbering {
 public:
  explicit PushNumbering(int ps) : parts_(static_cast<std::size_t>(ps)) {}

  /// Assigns the following pushes to replica 0 of `closure`.
  void begin(const RunningClosure& closure) {
    closure_ = closure;
    replica_ = 0;
    call_ = 0;
    calls_.clear();
  }
  bool in_closure() const noexcept { return closure_.id != 0; }
  /// Assigns the following pushes to `replica`. Each replica has its own count, because pushes of different
  /// replicas are sent in any order.
  void push_as(int replica) noexcept { replica_ = static_cast<std::uint16_t>(replica); }
  /// Starts the next push. A skipped push takes a number too, so that later numbers do not depend on it.
  void next_push() {
    ++pushes_;
    if (calls_.size() <= replica_) calls_.resize(replica_ + std::size_t{1});
    call_ = calls_[replica_]++;
    counts_once_ = closure_.id != 0;
  }
  /// Starts a push that every run of the closure applies, as if it was outside of the closure.
  void next_push_of_every_run() noexcept {
    ++pushes_;
    counts_once_ = false;
  }
  /// Numbers the next entry that the current push sends to the ps with index `ps`.
  void number(protocol::PushHeader& header, int ps) noexcept {
    if (!counts_once_) {
      header.call = static_cast<std::uint32_t>(pushes_);
      return;
    }
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
    std::uint64_t push = 0;  // value of `pushes_` for which `sent` is valid
    std::uint32_t sent = 0;
  };

  RunningClosure closure_;
  bool counts_once_ = false;  // the current push counts once, however often the closure runs
  std::uint16_t replica_ = 0;
  std::uint32_t call_ = 0;            // number of the current push within its replica
  std::uint64_t pushes_ = 0;          // of this client; never reset
  std::vector<std::uint32_t> calls_;  // pushes of the closure, by replica
  std::vector<Parts> parts_;          // entries of the current push, by ps
};

}  // namespace capstan::client
