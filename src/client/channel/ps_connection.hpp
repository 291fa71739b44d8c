// ps_connection.hpp -- one client's connection to one ps: a session, and the channels for its present
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

/// Chooses the channels when it connects, and again after the ps's memory was lost. Used by the thread that
/// owns the data fabric.
class PsConnection {
 public:
  /// As PsSession's.
  PsConnection(cluster::Runtime& runtime, transport::RpcClient& rpc, int ps) : session_(runtime, rpc, ps) {}

  // PsSession describes these:
  void connect() {
    if (!session_.connected()) connect_now();
  }
  bool connected() const noexcept { return session_.connected(); }
  transport::Peer& peer() noexcept { return session_.peer(); }
  Path path() const noexcept { return session_.process().path; }
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

  /// Returns true if the ps's memory was lost with entries of this client in flight, until the next call that
  /// uses a channel.
  bool lost_pushes() const noexcept {
    return channels_.pushes != nullptr && channels_.relocations != session_.relocations() &&
           !channels_.pushes->idle();
  }

  // PushChannel describes these:
  void push(const PushRows& push, PushNumbering& numbering, bool more = false) {
    if (push.count != 0 && push.row_bytes != 0) pushes().push(push, numbering, more);
  }
  void publish() { pushes().publish(); }
  bool idle() { return pushes().idle(); }

  /// Position behind everything that this client has pushed to the ps so far.
  struct PushPosition {
    std::uint64_t relocations = 0;  // of the session
    std::uint64_t of_channel = 0;
  };
  PushPosition pushed() { return {session_.relocations(), pushes().pushed()}; }
  /// Returns true once `wait` would return or throw, or the ps is dead. Waits for no push; by RMA, it reads a
  /// word of the ps's memory.
  bool applied(const PushPosition& position);
  /// Blocks until the ps has applied everything before `position`. Throws Error(unavailable) if some of it
  /// was lost with the ps's memory.
  void wait(const PushPosition& position);
  /// Blocks until the ps has applied everything.
  void flush() {
    connect();
    wait(pushed());
  }

  /// Adds to a counter of the ps, in order with the pushes; once, if a closure runs again.
  void count(std::uint32_t counter, std::uint64_t delta, PushNumbering& numbering);
  /// Sets the learning rate of a shard, in order with the pushes; once, if a closure runs again.
  void set_learning_rate(std::uint32_t variable, std::uint32_t shard, double rate, PushNumbering& numbering);
  /// Ends this rank's step `step` of an update group, in order with its pushes; protocol::kLeave: it takes no
  /// further part.
  void end_step(std::uint32_t group, std::uint64_t step);
  /// Adds to a counter at once, and returns its previous value.
  std::uint64_t fetch_add(std::uint64_t counter, std::uint64_t delta);

  ReadChannel& reads() { return *channels().reads; }
  protocol::GroupClocks clocks(std::uint32_t group) { return group_clocks(session_, group); }
  /// Returns nullptr where gradients cannot be pushed from a GPU's memory.
  GpuPushChannel* gpu_pushes() { return channels().gpu_pushes.get(); }
  /// Returns row 0 of a shard in the ps's GPU, for kernels of `reader`'s GPU; nullptr where they cannot reach
  /// it. Valid until the ps dies. REQUIRES: a ps of this host; all reads of the address go through `reader`.
  const std::byte* gpu_values(const GpuRows& reader, std::uint32_t variable, std::uint32_t shard);

 private:
  /// All for one process of the ps.
  struct Channels {
    std::unique_ptr<PushChannel> pushes;
    std::unique_ptr<GpuPushChannel> gpu_pushes;  // may refer to `pushes`
    std::unique_ptr<ReadChannel> reads;
    std::uint64_t relocations = ~std::uint64_t{0};  // of the session, when they were chosen
  };

  Channels& channels() {
    if (channels_.relocations != session_.relocations()) replace_channels();
    return channels_;
  }
  void replace_channels();
  bool lost(const PushPosition& position);
  PushChannel& pushes() { return *channels().pushes; }
  Channels choose_channels();
  /// Throws Error(unavailable) if pushes were lost, and that was not reported: the reconnect before failed.
  void connect_now();

  PsSession session_;
  /// Replaced by the first call after a relocation. The call that met the relocation may still be inside the
  /// old channels.
  Channels channels_;
  /// Relocations that lost pushes, and the position from which on.
  std::map<std::uint64_t, std::uint64_t> losses_;
};

}  // namespace capstan::client
