// fabric.hpp -- how a rank reaches other ranks: active messages, registered memory, and windows onto memory.
//
// Two implementations: ucx/fabric.hpp between processes, loop/loop.hpp between threads of one process. The
// layers above use this interface only. A Fabric and the objects that it creates belong to one thread at a
// time; only `wake` may be called from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "transport/job_secret.hpp"
#include "transport/memory/persistent_memory.hpp"

namespace capstan::transport {

using Bytes = std::span<const std::byte>;
using Deadline = std::chrono::steady_clock::time_point;

/// Returns the time `timeout` from now; the last time point if that overflows.
inline Deadline deadline_in(std::chrono::milliseconds timeout) { return deadline_after(timeout); }

/// Size limit of the header of a message that is sent in place, in bytes.
inline constexpr std::size_t kInPlaceHeader = 120;
/// Largest payload that every transport sends as one message; a larger one is split and reassembled, which
/// costs a copy. Measured over TCP, whose 64 KiB buffers also hold the headers of UCX and Capstan.
inline constexpr std::size_t kPieceBytes = 60 * 1024;

/// How a window reaches its memory. `automatic` maps the memory where that is possible.
enum class WindowPath : std::uint8_t { automatic, mapped, rma };

/// The data that another rank needs to open a window: an address and the fabric's key.
struct RegionKey {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::vector<std::byte> packed;
  FileLocation file = {};
};

/// Registered memory that other ranks may read and write. Zeroed and page-aligned. The object owns the
/// memory; peers that mapped it keep their mappings.
class Region {
 public:
  virtual ~Region() = default;
  virtual std::span<std::byte> memory() noexcept = 0;
  virtual RegionKey key() const = 0;
};

/// Memory of another rank. On the same host it can be mapped: then `mapped()` is a plain pointer, and put and
/// get are copies; otherwise they are RMA operations. An access to mapped memory of a dead rank succeeds, so
/// check Peer::failed.
class Window {
 public:
  virtual ~Window() = default;

  /// The memory itself; nullptr if only put and get reach it.
  std::byte* mapped() const noexcept { return mapped_; }
  /// The memory itself, which stays mapped while the pointer or a copy of it lives, even if this window and
  /// its rank have ended. nullptr if the memory is not mapped, or if only UCX can map it.
  std::shared_ptr<const std::byte> shared() const noexcept { return shared_; }
  std::uint64_t length() const noexcept { return length_; }

  /// Starts a write. `data` may be reused on return. Only `fence` orders the write before later puts. put and
  /// get are atomic for an aligned 64-bit word. REQUIRES, here and below: the access lies within the window.
  virtual void put(std::uint64_t offset, Bytes data) = 0;
  /// Reads. Throws Error(deadline_exceeded) if the data has not arrived by `deadline`.
  virtual void get(std::uint64_t offset, std::span<std::byte> out, Deadline deadline) = 0;
  /// Orders all previous puts before all later puts.
  virtual void fence() = 0;
  /// Blocks until all puts have arrived. Throws Error(deadline_exceeded).
  virtual void flush(Deadline deadline) = 0;

 protected:
  /// Aborts if the access does not lie within the window.
  void require_inside(std::uint64_t offset, std::uint64_t bytes) const;
  /// Returns true for an aligned 64-bit word, which is accessed atomically.
  static bool is_word(std::uint64_t offset, std::uint64_t bytes) noexcept {
    return bytes == sizeof(std::uint64_t) && offset % sizeof(std::uint64_t) == 0;
  }

  std::byte* mapped_ = nullptr;
  std::shared_ptr<std::byte> shared_;  // keeps mapped_ alive, if set
  std::uint64_t length_ = 0;
};

/// Another rank, as seen from one Fabric.
class Peer {
 public:
  virtual ~Peer() = default;

  int rank() const noexcept { return rank_; }
  /// "ps 1 (rank 2 on node17)", for messages.
  const std::string& name() const noexcept { return name_; }
  /// Returns true once the transport has reported the peer's death, or a wait for the peer has timed out.
  bool failed() const noexcept { return failed_; }
  /// Throws Error(unavailable), which names the peer, if it has failed.
  void require_alive() const;

  /// Sends an active message; `header` and `payload` may be reused on return. Messages to one peer arrive in
  /// order. Never blocks. A message to a failed peer is dropped.
  virtual void send(std::uint16_t type, Bytes header, Bytes payload = {}) = 0;
  /// Sends without a copy of `payload`, which must not change while it is in flight. The call increments
  /// `in_flight`; progress() decrements it when the transport no longer needs the payload, or the peer has
  /// failed. `in_flight` must live until then. `header` has at most kInPlaceHeader bytes.
  virtual void send_in_place(std::uint16_t type, Bytes header, Bytes payload, std::uint32_t& in_flight) = 0;

  /// Closes the connection by force, which ends its sends and accesses in flight. The peer counts as failed.
  virtual void disconnect() noexcept = 0;

  /// Marks a peer that is known to be dead before the transport reports it, so that waits for it end. May be
  /// called inside progress().
  void mark_failed() noexcept { failed_ = true; }

  /// Connects to the process that has replaced the previous one; `name` may differ, because the host may.
  /// Windows that are not mapped become invalid. Must not be called inside progress(). Throws
  /// Error(unimplemented) between threads of one process.
  virtual void revive(Bytes address, const std::string& name);
  /// Number of calls of revive(). Requests that were sent before the last call are never answered.
  std::uint32_t revivals() const noexcept { return revivals_; }

  /// Throws Error(unavailable) if `path` is `mapped` and the memory cannot be mapped.
  virtual std::unique_ptr<Window> open_window(const RegionKey& key, WindowPath path) = 0;

  /// Names of the transports in use, for the log: "tcp", "loop", "rc_mlx5".
  virtual std::string transports() const = 0;
  /// Returns true if the adapter accesses the peer's memory without the peer's CPU. Otherwise UCX emulates
  /// RMA on that CPU, and active messages have more bandwidth.
  virtual bool has_hardware_rma() const = 0;

 protected:
  Peer(int rank, std::string name) : rank_(rank), name_(std::move(name)) {}

  int rank_;
  std::string name_;
  bool failed_ = false;
  std::uint32_t revivals_ = 0;
};

/// An active message, as its handler receives it. The spans are valid until the handler returns.
struct Message {
  std::uint16_t type = 0;
  int from = -1;  ///< rank of the sender
  Bytes header;
  Bytes payload;
};

/// Counts a message that was dropped because its header does not have `expected` bytes, and logs the first
/// one of each type. Any thread.
void count_malformed(const Message& message, std::size_t expected) noexcept;
/// Number of calls of count_malformed in this process.
std::uint64_t malformed_messages() noexcept;

class Fabric {
 public:
  /// Runs inside progress(). May send; must not progress, wait, or throw.
  using Handler = std::function<void(const Message&)>;
  using FailureHandler = std::function<void(Peer&)>;

  virtual ~Fabric() = default;

  /// The address that other ranks pass to `connect`.
  virtual std::vector<std::byte> address() const = 0;
  /// Sets the sender of this fabric's messages. Call before the first send.
  void set_rank(int rank) noexcept { rank_ = rank; }
  int rank() const noexcept { return rank_; }
  /// Sets the secret that messages carry, initially zero; received messages without it are dropped. Does
  /// nothing between threads of one process. REQUIRES: no message was sent or received yet.
  virtual void set_secret(const JobSecret& /*secret*/) noexcept {}

  /// Returns a new connection, which lives as long as the fabric. The control and the data fabric of one rank
  /// are two peers.
  virtual Peer& connect(int rank, const std::string& name, Bytes address) = 0;

  virtual std::unique_ptr<Region> allocate(std::size_t bytes) = 0;
  /// Registers mapped memory, which must outlive the region; it is neither zeroed nor freed. Throws
  /// Error(unimplemented) between threads of one process.
  virtual std::unique_ptr<Region> adopt(std::span<std::byte> memory, const FileLocation& location);
  /// Reserves memory whose pages are allocated on first use, and which peers can map, but not access by RMA.
  /// Throws Error: unimplemented between processes, resource_exhausted.
  virtual std::unique_ptr<Region> reserve(std::size_t bytes);

  /// Runs the handlers of messages that have arrived. Returns 0 if there was nothing to do.
  virtual unsigned progress() = 0;
  /// Prepares a `sleep`. Returns false if something may have arrived already.
  virtual bool arm() = 0;
  /// Sleeps until something may have arrived, `wake` is called, or `timeout` has passed. Does not progress.
  /// The thread that called `arm` may sleep while another thread uses the fabric.
  virtual void sleep(std::chrono::milliseconds timeout) = 0;
  void wait(std::chrono::milliseconds timeout) {
    if (arm()) sleep(timeout);
  }
  /// Returns true if windows can read into, and write from, memory of this process's GPUs.
  virtual bool reaches_gpus() const { return false; }
  /// Ends the current `sleep`, or the next one. Any thread.
  virtual void wake() noexcept = 0;
  /// The name that another process of this host passes to `signal` to wake this fabric; empty between
  /// threads.
  virtual std::string doorbell() const { return {}; }
  /// Wakes the fabric with this `doorbell`. Returns false if that is not possible: send a message instead.
  virtual bool signal(const std::string& /*doorbell*/) noexcept { return false; }

  /// Sets the handler of a message type. A message without a handler is logged and dropped, unless
  /// keep_unhandled(true) was called.
  void on_message(std::uint16_t type, Handler handler);
  /// Sets the failure handler, which runs inside progress(), once for each peer that dies.
  void on_failure(FailureHandler handler) { failure_handler_ = std::move(handler); }
  /// Sets whether messages and failures without a handler are kept. Once they have a handler, the next
  /// progress() delivers them in order. Of equal messages from a rank, only the last one is kept, to bound
  /// the memory.
  void keep_unhandled(bool keep) noexcept { keeps_unhandled_ = keep; }
  /// Removes all handlers and kept messages; messages that arrive later are dropped. Called before the owner
  /// of the handlers ends.
  void remove_handlers() noexcept;
  /// Tells the destructor that the process exits soon after it, while other ranks may still connect. The
  /// destructor then closes only this object's own connections; process exit releases the rest.
  virtual void leave_teardown_to_exit() noexcept {}

 protected:
  void deliver(const Message& message) noexcept;
  void report_failure(Peer& peer) noexcept;
  /// Called first in progress(): delivers kept messages that have a handler now. Returns their number.
  unsigned deliver_unhandled() noexcept;

 private:
  struct UnhandledMessage {
    std::uint16_t type;
    int from;
    std::vector<std::byte> header;
    std::vector<std::byte> payload;
    bool operator==(const UnhandledMessage&) const = default;
  };

  bool has_handler(std::uint16_t type) const noexcept { return type < handlers_.size() && handlers_[type]; }
  void keep(const Message& message);

  int rank_ = -1;
  std::vector<Handler> handlers_;
  FailureHandler failure_handler_;
  bool silent_ = false;
  bool keeps_unhandled_ = false;
  std::deque<UnhandledMessage> unhandled_messages_;
  std::vector<Peer*> unhandled_failures_;
};

/// The handlers of one owner; its destructor removes them, and later messages of their types are dropped.
/// Used and destroyed by the thread that progresses the fabric.
class Subscriptions {
 public:
  explicit Subscriptions(Fabric& fabric) : fabric_(fabric) {}
  ~Subscriptions() { end(); }
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  /// Replaces the handler that the fabric has for `type`.
  void on_message(std::uint16_t type, Fabric::Handler handler);
  /// Replaces the fabric's failure handler.
  void on_failure(Fabric::FailureHandler handler);
  /// Removes the handlers now.
  void end() noexcept;

 private:
  Fabric& fabric_;
  std::vector<std::uint16_t> types_;
  bool failures_ = false;
};

/// Progresses `fabric` until `done()` returns true or the deadline passes. Returns the last result of
/// `done()`. Polls briefly, then sleeps.
bool progress_until(Fabric& fabric, Deadline deadline, const std::function<bool()>& done);

}  // namespace capstan::transport
