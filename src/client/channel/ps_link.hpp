// ps_link.hpp -- one client's way to one ps: its board, windows onto its regions, and how pushes get there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/channel/path.hpp"
#include "client/channel/push_rows.hpp"
#include "client/channel/staging_buffer.hpp"
#include "cluster/runtime.hpp"
#include "protocol/failover.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "transport/rpc/rpc.hpp"

namespace capstan::gpu {
class Event;
}  // namespace capstan::gpu

namespace capstan::client {

/// The closure whose pushes a client sends; 0 outside of closures.
struct RunningClosure {
  std::uint64_t id = 0;
  bool again = false;         // it had been begun before
  std::uint64_t pushes = 0;   // of the client, so far: another number for each
  std::uint16_t replica = 0;  // whose push it is
  std::uint32_t call = 0;     // its number among the replica's
};

/// Ps that have come back, by rank, until their links know.
using Returned = std::map<int, cluster::Member>;

/// Where a shard lies that has moved with its ps, by variable and shard.
using CurrentLocations = std::map<std::pair<std::uint32_t, std::uint32_t>, protocol::ShardLocation>;

class PsLink {
 public:
  /// Asks the ps for its board and chooses the path. Throws Error: unavailable, deadline_exceeded,
  /// failed_precondition (--require-transport).
  /// `closure` and `returned` may change between calls, and outlive the link. `moves` counts how often a ps
  /// has come back with other memory, so that its windows and places are new.
  /// `dies` is called when the ps has died, before its return is waited for.
  PsLink(cluster::Runtime& runtime, transport::RpcClient& rpc, int ps, const RunningClosure& closure,
         Returned& returned, std::uint64_t& moves, std::function<void()> dies);
  ~PsLink();
  PsLink(const PsLink&) = delete;
  PsLink& operator=(const PsLink&) = delete;

  transport::Peer& peer() noexcept { return peer_; }
  Path path() const noexcept { return path_; }
  /// The ps lives, or nothing has told otherwise. On a mapped path that is exact: what was loaded before the
  /// call is of a living ps.
  bool alive() const noexcept;
  /// Where it does not, waits until its agent has started it again, or a spare has taken its place. Throws
  /// Error(unavailable) when that does not happen, or when it is back and what was on its way to it is lost:
  /// never where its memory is mapped, unless it is a spare's now.
  void require_alive();
  /// How often the ps has come back.
  std::uint64_t returns() const noexcept { return returns_; }
  /// Where the shard lies that lay at `then` when it was made.
  const protocol::ShardLocation& place_now(std::uint32_t variable, std::uint32_t shard,
                                           const protocol::ShardLocation& then) const;
  /// Nothing is on its way to the ps.
  bool idle() const noexcept { return sink_ != nullptr ? !sink_->unsettled() : applied_ == tail_; }

  /// The window onto a region of the ps, opened on first use.
  transport::Window& window(std::uint64_t region);
  /// By which kernels of this host read a shard that lies in a GPU (gpu::MappedMemory).
  std::vector<std::byte> gpu_key(std::uint32_t variable, std::uint32_t shard);
  /// Adds to a counter of the board; what was there.
  std::uint64_t fetch_add(std::uint64_t index, std::uint64_t delta);

  /// Sends a push, in parts where it is large; waits for room. In an embedded cluster it is applied on the
  /// spot. The gradient may be reused on return. With `more`, the ps need not hear of it before `publish`.
  void push(const PushRows& push, bool more = false);
  /// Whether, in an embedded cluster, the shard lies in that GPU; then it has what such a push takes from
  /// there. Throws Error(resource_exhausted).
  bool reserve_from_gpu(const PushRows& push, int gpu);
  /// Such a push of a gradient that is there when `made` has passed: waits for that. REQUIRES: its `order` is
  /// empty.
  void push_from_gpu(const PushRows& push, const gpu::Event& made);
  /// Whether this rank's kernels on that GPU may put gradients into the ps's.
  bool has_room_on_gpu(const PushRows& push, int gpu);
  /// Puts rows [first, first + count) of a gradient there; returns when they are.
  using Put = std::function<void(std::uint64_t first, std::uint64_t count, std::byte* to)>;
  /// A push of such a gradient; not its `gradient` and `order`, but `put` says which. REQUIRES:
  /// has_room_on_gpu, to a shard that lies there and has no update group.
  void push_by_room(const PushRows& push, int gpu, const Put& put);
  /// Shows the ps what has been pushed.
  void publish();
  /// Waits until all pushes have been applied. Throws Error(aborted) when this rank counts as dead.
  void flush();

  /// Looks until `done`, asleep in between after a while; false at the deadline. Throws Error(unavailable)
  /// when the ps has died.
  bool wait_until(const std::function<bool()>& done);

  /// Adds to a counter of the board, in order with the pushes; of a closure, once.
  void count(std::uint32_t counter, std::uint64_t delta);

  /// This rank has ended a step of an update group, or protocol::kLeave: in order with its pushes.
  void end_step(std::uint32_t group, std::uint64_t step);
  /// Steps that all who are waited for have ended, as far as this ps knows.
  std::uint64_t steps_of(std::uint32_t group);
  protocol::GroupClocks clocks(std::uint32_t group);

  /// A kPushApplied message from this ps.
  void take_applied(const protocol::PushApplied& applied) noexcept {
    if (applied.life == ps_life_ || applied.bytes == protocol::kFenced) applied_ = applied.bytes;
  }

 private:
  /// An entry on its way as a message.
  struct SendBuffer {
    std::uint32_t in_flight = 0;
    std::vector<std::byte> bytes;
  };

  /// A call to the ps that may be made twice; where the ps dies, after it has come back.
  std::vector<std::byte> call(std::uint16_t type, transport::Bytes request, const char* what);
  protocol::ConnectReply ask_to_connect();
  void connect();
  void meet(const protocol::ConnectReply& reply);
  void await_return();
  void come_back();
  void open_ring();
  void number(protocol::PushHeader& header);
  void send_header(protocol::PushHeader header);
  protocol::PushHeader next_header(const PushRows& push, std::uint64_t first, std::uint64_t count);
  void push_inline(const PushRows& push);
  void write_entry(const PushRows& push, std::uint64_t first, std::uint64_t count);
  void write_entry_in_room(const PushRows& push, std::uint64_t first, std::uint64_t count,
                           const protocol::BufferSlot& place);
  protocol::BufferSlot take_room(StagingBuffer& room, std::uint64_t bytes);
  void send_entry(const PushRows& push, std::uint64_t first, std::uint64_t count);
  void write_or_send(const PushRows& push, bool more);
  void reclaim_gradient();
  SendBuffer& free_parcel();
  void reserve(std::uint64_t bytes);
  void wait_for_room(std::uint64_t bytes);
  void read_applied();
  void wait_for_ps(const char* what, const std::function<bool()>& done);

  cluster::Runtime& runtime_;
  transport::RpcClient& rpc_;
  transport::Peer& peer_;
  int rank_;
  bool single_host_;
  const RunningClosure& closure_;
  std::uint64_t numbered_ = 0;  // RunningClosure::pushes of the push whose entries `parts_` counts
  std::uint32_t parts_ = 0;
  protocol::BoardLayout layout_;
  std::unique_ptr<transport::Window> board_;
  std::string bell_;
  bool counts_by_call_ = false;
  const std::byte* life_ = nullptr;  // the ps's life word, where it is mapped
  protocol::PushSink* sink_ = nullptr;
  Path path_ = Path::messages;
  std::map<std::uint64_t, std::unique_ptr<transport::Window>> windows_;

  std::uint64_t room_ = 0;  // bytes that may be on their way to being applied, as the ps says
  Returned& returned_;
  std::uint64_t returns_ = 0;
  std::uint64_t& moves_;
  std::function<void()> dies_;
  std::uint32_t ps_life_ = 0;  // of the ps
  CurrentLocations places_;    // empty in its first life
  protocol::RingLocation ring_;
  transport::Window* ring_window_ = nullptr;
  std::uint64_t tail_ = 0;          // bytes written so far
  std::uint64_t published_ = 0;     // of them, what the ps may see
  std::uint64_t applied_ = 0;       // as last read or told
  std::vector<std::byte> staging_;  // an entry for a window that is not mapped, or gathered for the sink
  std::vector<std::uint32_t> numbers_;
  std::vector<std::unique_ptr<SendBuffer>> parcels_;
  std::map<int, StagingBuffer> gpu_rooms_;  // by the GPU whose kernels use it
  std::uint32_t from_gradient_ = 0;  // messages that the transport still reads from the caller's gradient
};

}  // namespace capstan::client
