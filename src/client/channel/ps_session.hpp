// ps_session.hpp -- one client's session with one ps: whether it lives, waiting for it, reconnecting to it.
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
#include "transport/memory/life_word.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::client {

/// What a client knows of the process that is the ps now.
struct PsProcess {
  std::uint32_t incarnation = 0;  // another one than before: shards lie elsewhere (ConnectReply::incarnation)
  Path path = Path::messages;
  std::unique_ptr<PsBoard> board;
  const std::byte* life_word = nullptr;  // of the board; nullptr where it is not mapped
  std::string doorbell;
  bool counts_by_call = false;         // only the ps itself adds to its counters
  protocol::PushSink* sink = nullptr;  // its store, where it is a thread of this process
  std::uint64_t ring_bytes = 0;        // most bytes of entries in flight
  std::uint64_t applied = 0;           // bytes of entries that it had applied when the session connected
};

/// Outlives the channels that use it. A ps that dies may be restarted by its agent, or replaced by a spare;
/// calls that meet a dead ps wait for that and reconnect. If its memory survived, the call goes on, and
/// everything in flight is still there. Otherwise everything in flight is lost: the call throws
/// Error(unavailable), and channels to that process must be replaced. Used by the thread that owns the data
/// fabric.
class PsSession {
 public:
  /// `ps` is an index. `runtime` and `rpc` outlive the session. Sends nothing.
  PsSession(cluster::Runtime& runtime, transport::RpcClient& rpc, int ps);
  PsSession(const PsSession&) = delete;
  PsSession& operator=(const PsSession&) = delete;

  /// Connects unless connected() is true. Throws Error: unavailable, deadline_exceeded, failed_precondition
  /// (--require-transport).
  void connect() {
    if (!connected_) connect_now();
  }
  bool connected() const noexcept { return connected_; }

  // REQUIRES, of all calls below but note_restart, restarts and relocations: connect() has succeeded once.

  int ps() const noexcept { return ps_; }
  /// This client's rank.
  int rank() const noexcept { return rank_; }
  transport::Peer& peer() noexcept { return *peer_; }
  transport::Fabric& fabric() noexcept { return runtime_.data(); }
  /// Longest wait on another rank.
  std::chrono::milliseconds timeout() const { return runtime_.wait_timeout(); }
  const PsProcess& process() const noexcept { return process_; }
  PsBoard& board() noexcept { return *process_.board; }
  PsGpuMemory& gpu_memory() noexcept { return gpu_memory_; }
  /// Returns the window onto a region of the ps, which is opened on first use. Valid until the ps's memory is
  /// lost.
  transport::Window& window(std::uint64_t region);
  /// Returns the present location of a shard that was created at `original`.
  const protocol::ShardLocation& current_location(std::uint32_t variable, std::uint32_t shard,
                                                  const protocol::ShardLocation& original) const;

  /// Returns false once the ps is known to be dead. Where its board is mapped the answer is exact: memory of
  /// the ps that was loaded before a call that returns true belonged to a live ps.
  bool alive() const noexcept {
    return !peer_->failed() && !restarted_ &&
           (process_.life_word == nullptr || transport::LifeWord::alive(process_.life_word));
  }
  /// Reconnects if the ps is dead; returns false if what was in flight is lost with its memory. Throws
  /// Error(unavailable) if it does not return within --ps-wait.
  [[nodiscard]] bool reconnect_if_dead() {
    if (process_.life_word == nullptr) fabric().progress();  // which notices deaths
    return alive() || reconnect();
  }
  /// The same. Throws Error(unavailable) if what was in flight is lost.
  void require_alive() {
    if (!reconnect_if_dead()) throw lost_pushes();
  }
  /// Calls the ps; `request` may be sent twice, if the ps dies and returns. Throws what it answers, and what
  /// require_alive throws.
  std::vector<std::byte> call(std::uint16_t type, transport::Bytes request, const char* what);
  /// Polls `done`, with increasing pauses; returns false if it is still false after `timeout()`. Reconnects
  /// if the ps dies, and starts the timeout again. Throws what `done` and require_alive throw.
  bool wait_until(const std::function<bool()>& done);
  /// The same. Throws Error(deadline_exceeded), which names the ps and `what` it was to do.
  void wait_for(const char* what, const std::function<bool()>& done);

  /// A process announces that it is the ps now. Ignores what is known already, and incarnations that were
  /// replaced. May be called inside progress().
  void note_restart(std::uint32_t incarnation, cluster::Member process);
  /// Number of times that the ps was restarted or replaced, as far as this session has noticed.
  std::uint64_t restarts() const noexcept { return restarts_; }
  /// Number of times that the ps's memory was lost, and with it windows and shard locations.
  std::uint64_t relocations() const noexcept { return relocations_; }
  /// Bytes of entries that are known to have been applied when the memory was lost that was in use after
  /// `relocations` earlier losses. REQUIRES: relocations < relocations().
  std::uint64_t applied_at_loss(std::uint64_t relocations) const noexcept {
    return applied_at_loss_[static_cast<std::size_t>(relocations)];
  }

  /// The ps acknowledges entries that were sent as messages. May be called inside progress().
  void note_acknowledged(const protocol::PushApplied& applied) noexcept {
    if (applied.incarnation == process_.incarnation || applied.bytes == protocol::kFenced)
      acknowledged_ = applied.bytes;
  }
  /// Bytes of entries that were acknowledged, or protocol::kFenced.
  std::uint64_t acknowledged() const noexcept { return acknowledged_; }

  /// The error of a rank that the ps counts as dead.
  Error fenced() const;
  /// The error of pushes that died with the ps's memory.
  Error lost_pushes() const;

 private:
  void connect_now();
  /// Waits for the next process of the ps; returns false if it does not have the memory of the one before.
  [[nodiscard]] bool reconnect();
  void await_restart();
  bool take_restarted();
  protocol::ConnectReply ask_to_connect();
  void begin(const protocol::ConnectReply& reply);
  void read_locations();
  void forget_memory(std::uint64_t applied);

  cluster::Runtime& runtime_;
  transport::RpcClient& rpc_;
  const int ps_;
  const int rank_;
  transport::Peer* peer_ = nullptr;  // stays the same when the ps is replaced
  bool connected_ = false;
  PsProcess process_;
  std::map<std::uint64_t, std::unique_ptr<transport::Window>> windows_;  // by region
  /// By variable and shard; empty in the first incarnation.
  std::map<std::pair<std::uint32_t, std::uint32_t>, protocol::ShardLocation> locations_;
  PsGpuMemory gpu_memory_;
  std::pair<std::uint32_t, std::int64_t> announced_;  // incarnation and process id, as last announced
  std::optional<cluster::Member> restarted_;          // announced, and not connected to yet
  std::uint64_t acknowledged_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t relocations_ = 0;
  std::vector<std::uint64_t> applied_at_loss_;  // one for each relocation
};

}  // namespace capstan::client
