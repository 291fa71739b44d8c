// ps_session.hpp -- one client's session with one ps: its liveness, waiting and reconnecting.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "client/channel/path.hpp"
#include "client/channel/ps_board.hpp"
#include "client/channel/ps_gpu_memory.hpp"
#include "cluster/runtime.hpp"
#include "protocol/failover.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "transport/memory/liveness_word.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::client {

/// The current process of the ps, as this client knows it.
struct PsProcess {
  std::uint32_t incarnation = 0;  // after a change, shard locations are stale (ConnectReply)
  Path path = Path::messages;
  std::unique_ptr<PsBoard> board;
  const std::byte* liveness_word = nullptr;  // of the board; nullptr if the board is not mapped
  std::string doorbell;
  bool counts_by_call = false;         // only the ps itself adds to its counters
  protocol::PushSink* sink = nullptr;  // its store if it is a thread of this process
  std::uint64_t ring_bytes = 0;        // --push-ring-bytes of the ps
  std::uint64_t applied = 0;           // bytes of applied entries when the session connected
};

/// A session with one ps; outlives the channels that use it. A dead ps may be restarted by its agent or
/// replaced by a spare. A call that detects a dead ps waits for the new process and reconnects. If the ps's
/// memory survived, the call continues and everything in flight is intact. Otherwise everything in flight is
/// lost:
/// the call throws Error(unavailable), and channels to that process must be replaced. Used by the thread
/// that owns the data fabric.
class PsSession {
 public:
  /// `ps` is the index of the ps. `runtime` and `rpc` must outlive the session. Sends nothing.
  PsSession(cluster::Runtime& runtime, transport::RpcClient& rpc, int ps);
  PsSession(const PsSession&) = delete;
  PsSession& operator=(const PsSession&) = delete;

  /// Connects unless connected() is true. Throws Error: unavailable, deadline_exceeded, failed_precondition
  /// (--require-transport).
  void connect() {
    if (!connected_) connect_now();
  }
  bool connected() const noexcept { return connected_; }

  // All calls below except note_restart, restarts and relocations REQUIRE that connect() has succeeded
  // once.

  int ps() const noexcept { return ps_; }
  /// Rank of this client.
  int rank() const noexcept { return rank_; }
  transport::Peer& peer() noexcept { return *peer_; }
  transport::Fabric& fabric() noexcept { return runtime_.data(); }
  /// Maximum time to wait for another rank.
  std::chrono::milliseconds timeout() const { return runtime_.wait_timeout(); }
  const PsProcess& process() const noexcept { return process_; }
  PsBoard& board() noexcept { return *process_.board; }
  PsGpuMemory& gpu_memory() noexcept { return gpu_memory_; }
  /// Returns the window onto a region of the ps; opens it on first use. Valid until the ps's memory is
  /// lost.
  transport::Window& window(std::uint64_t region);
  /// Returns the current location of a shard that was created at `original`.
  const protocol::ShardLocation& current_location(std::uint32_t variable, std::uint32_t shard,
                                                  const protocol::ShardLocation& original) const;

  /// Returns false once the ps is known to be dead. With a mapped board the answer is exact: if this
  /// returns true, memory that was loaded before the call belonged to a live ps.
  bool alive() const noexcept {
    return !peer_->failed() && !restarted_ &&
           (process_.liveness_word == nullptr || transport::LivenessWord::alive(process_.liveness_word));
  }
  /// Reconnects if the ps is dead; returns false if everything in flight was lost with its memory. Throws
  /// Error(unavailable) if the ps is not restarted within --ps-wait.
  [[nodiscard]] bool reconnect_if_dead() {
    if (process_.liveness_word == nullptr) fabric().progress();  // detects dead peers
    return alive() || reconnect();
  }
  /// Like reconnect_if_dead(), but throws Error(unavailable) if everything in flight was lost.
  void require_alive() {
    if (!reconnect_if_dead()) throw lost_pushes();
  }
  /// Calls the ps. Sends `request` again if the ps is restarted, so it must be idempotent. Throws the error
  /// of the reply, and the same errors as require_alive().
  std::vector<std::byte> call(std::uint16_t type, transport::Bytes request, const char* what);
  /// Polls `done` with increasing pauses; returns false if it is still false after `timeout()`. If the ps
  /// is restarted, reconnects and restarts the timeout. Throws the same errors as `done` and
  /// require_alive().
  bool wait_until(const std::function<bool()>& done);
  /// Like wait_until(), but throws Error(deadline_exceeded) that names the ps and `what` it was waiting
  /// for.
  void wait_for(const char* what, const std::function<bool()>& done);

  /// Records that `process` is now the ps. Ignores known processes and earlier incarnations. May be called
  /// inside progress().
  void note_restart(std::uint32_t incarnation, cluster::Member process);
  /// Number of restarts and replacements of the ps that this session has detected.
  std::uint64_t restarts() const noexcept { return restarts_; }
  /// Number of losses of the ps's memory, which invalidate windows and shard locations.
  std::uint64_t relocations() const noexcept { return relocations_; }
  /// Returns the bytes of entries known to be applied at the loss of the ps's memory that followed
  /// `relocations` earlier losses. REQUIRES: relocations < relocations().
  std::uint64_t applied_at_loss(std::uint64_t relocations) const noexcept {
    return applied_at_loss_[static_cast<std::size_t>(relocations)];
  }

  /// Records an acknowledgment of entries that were sent as messages. May be called inside progress().
  void note_acknowledged(const protocol::PushApplied& applied) noexcept {
    if (applied.incarnation == process_.incarnation || applied.bytes == protocol::kFenced)
      acknowledged_ = applied.bytes;
  }
  /// Bytes of acknowledged entries, or protocol::kFenced.
  std::uint64_t acknowledged() const noexcept { return acknowledged_; }

  /// The error for a rank that the ps has fenced.
  Error fenced() const;
  /// The error for pushes that were lost with the ps's memory.
  Error lost_pushes() const;

 private:
  void connect_now();
  /// Waits for the next process of the ps; returns false if the memory of the previous one was lost.
  [[nodiscard]] bool reconnect();
  void await_restart();
  bool take_restarted();
  protocol::ConnectReply ask_to_connect();
  void begin(const protocol::ConnectReply& reply);
  void read_locations();
  void drop_memory(std::uint64_t applied);

  cluster::Runtime& runtime_;
  transport::RpcClient& rpc_;
  const int ps_;
  const int rank_;
  transport::Peer* peer_ = nullptr;  // the same object after a restart
  bool connected_ = false;
  PsProcess process_;
  std::map<std::uint64_t, std::unique_ptr<transport::Window>> windows_;  // by region
  /// By variable and shard; empty during the first incarnation.
  std::map<std::pair<std::uint32_t, std::uint32_t>, protocol::ShardLocation> locations_;
  PsGpuMemory gpu_memory_;
  std::pair<std::uint32_t, std::int64_t> announced_;  // incarnation and process id, as last announced
  std::optional<cluster::Member> restarted_;          // announced, but not connected yet
  std::uint64_t acknowledged_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t relocations_ = 0;
  std::vector<std::uint64_t> applied_at_loss_;  // one for each relocation
};

}  // namespace capstan::client
