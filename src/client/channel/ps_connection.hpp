// ps_connection.hpp -- one client's connection to one ps: a session, and channels to the ps's current
// process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "client/channel/gpu_push_channel.hpp"
#include "client/channel/ps_session.hpp"
#include "client/channel/push_channel.hpp"
#include "client/channel/read_channel.hpp"

namespace capstan::client {

/// Chooses its channels on first use, and again after a relocation: a loss of the ps's memory, after which
/// its shards have new locations. Used by the thread that owns the data fabric.
class PsConnection {
 public:
  /// Same arguments as PsSession.
  PsConnection(cluster::Runtime& runtime, transport::RpcClient& rpc, int ps) : session_(runtime, rpc, ps) {}

  /// Like PsSession::connect(). Also throws Error(unavailable) if pushes were lost and no call reported it.
  void connect() {
    if (!session_.connected()) connect_now();
  }
  /// Path to the ps's current process.
  Path path() const noexcept { return session_.process().path; }

  // Documented in PsSession:
  bool connected() const noexcept { return session_.connected(); }
  transport::Peer& peer() noexcept { return session_.peer(); }
  bool alive() const noexcept { return session_.alive(); }
  [[nodiscard]] bool reconnect_if_dead() { return session_.reconnect_if_dead(); }
  void require_alive() { session_.require_alive(); }
  bool wait_until(const std::function<bool()>& done) { return session_.wait_until(done); }
  void note_restart(std::uint32_t incarnation, cluster::Member process) {
    session_.note_restart(incarnation, std::move(process));
  }
  void note_acknowledged(const protocol::PushApplied& applied) noexcept {
    session_.note_acknowledged(applied);
  }
  std::uint64_t restarts() const noexcept { return session_.restarts(); }
  std::uint64_t relocations() const noexcept { return session_.relocations(); }
  const protocol::ShardLocation& current_location(std::uint32_t variable, std::uint32_t shard,
                                                  const protocol::ShardLocation& original) const {
    return session_.current_location(variable, shard, original);
  }

  /// Returns true if entries of this client were in flight when the ps's memory was lost. False again after
  /// the next call that uses a channel.
  bool has_lost_pushes() const noexcept {
    return channels_.pushes != nullptr && channels_.relocations != session_.relocations() &&
           !channels_.pushes->idle();
  }

  // Documented in PushChannel:
  void push(const PushRows& push, PushNumbering& numbering, bool more = false) {
    if (push.count != 0 && push.row_bytes != 0) pushes().push(push, numbering, more);
  }
  void publish() { pushes().publish(); }
  bool idle() { return pushes().idle(); }

  /// A position in this client's pushes to the ps.
  struct PushPosition {
    std::uint64_t relocations = 0;  // of the session
    std::uint64_t in_channel = 0;   // PushChannel::pushed() of the channel at that time
  };
  /// Returns the position after all pushes so far.
  PushPosition pushed() { return {session_.relocations(), pushes().pushed()}; }
  /// Returns true once `wait` would return or throw, or the ps is dead. Does not wait for pushes; with RMA
  /// it reads a word of the ps's memory.
  bool applied(const PushPosition& position);
  /// Blocks until the ps has applied everything before `position`. Throws Error(unavailable) if some of it
  /// was lost with the ps's memory.
  void wait(const PushPosition& position);
  /// Connects, then blocks until the ps has applied everything that this client has pushed so far.
  void flush() {
    connect();
    wait(pushed());
  }

  /// Adds to a counter of the ps, in order with pushes. Takes effect once, even if a closure runs again.
  void count(std::uint32_t counter, std::uint64_t delta, PushNumbering& numbering);
  /// Sets the learning rate of a shard, in order with pushes. Takes effect once, even if a closure runs
  /// again.
  void set_learning_rate(std::uint32_t variable, std::uint32_t shard, double rate, PushNumbering& numbering);
  /// Completes this rank's step `step` of an update group, in order with its pushes; with protocol::kLeave
  /// the rank leaves the group.
  void end_step(std::uint32_t group, std::uint64_t step);
  /// Adds to a counter immediately, and returns its previous value.
  std::uint64_t fetch_add(std::uint64_t counter, std::uint64_t delta);

  ReadChannel& reads() { return *channels().reads; }
  protocol::GroupClocks clocks(std::uint32_t group) { return group_clocks(session_, group); }
  /// Returns nullptr if gradients cannot be pushed from GPU memory.
  GpuPushChannel* gpu_pushes() { return channels().gpu_pushes.get(); }
  /// Returns the address of row 0 of a shard in the memory of the ps's GPU, for kernels of `reader`'s GPU;
  /// nullptr if they cannot access it. Valid until the ps dies. REQUIRES: the ps is on this host; all reads
  /// through the address use `reader`.
  const std::byte* gpu_values(const GpuRows& reader, std::uint32_t variable, std::uint32_t shard);

 private:
  /// Channels to one process of the ps.
  struct Channels {
    std::unique_ptr<PushChannel> pushes;
    std::unique_ptr<GpuPushChannel> gpu_pushes;  // may refer to `pushes`
    std::unique_ptr<ReadChannel> reads;
    std::uint64_t relocations = ~std::uint64_t{0};  // of the session, when the channels were chosen
  };

  Channels& channels() {
    if (channels_.relocations != session_.relocations()) replace_channels();
    return channels_;
  }
  void replace_channels();
  bool lost(const PushPosition& position);
  PushChannel& pushes() { return *channels().pushes; }
  Channels choose_channels();
  /// Connects. Throws Error(unavailable) if an earlier reconnect failed before it could report that pushes
  /// were lost.
  void connect_now();

  PsSession session_;
  /// Replaced on first use after a relocation, not at once: the call that detects the relocation may still
  /// use the old channels.
  Channels channels_;
  /// One entry for each relocation that lost pushes. Key: number of earlier relocations. Value: position in
  /// the channel up to which pushes are known to be applied.
  std::map<std::uint64_t, std::uint64_t> losses_;
};

}  // namespace capstan::client
