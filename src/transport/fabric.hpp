// fabric.hpp -- how a rank reaches other ranks: active messages, registered memory, windows onto it.
//
// Two implementations: ucx_fabric.hpp between processes, loop.hpp between threads of one process. Nothing
// above this folder knows which. A Fabric and all that comes from it belong to one thread at a time; `wake`
// alone may be called from any thread.
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

/// The deadline that lies `timeout` ahead, or the end of time.
inline Deadline deadline_in(std::chrono::milliseconds timeout) { return deadline_after(timeout); }

/// The longest header of a message that is sent in place.
inline constexpr std::size_t kInPlaceHeader = 120;
/// Data that fits one message of every transport; larger messages are cut up and put together again, which
/// costs a copy. Found over TCP, whose buffers hold 64 KiB with UCX's and our headers.
inline constexpr std::size_t kPieceBytes = 60 * 1024;

/// How a window reaches its memory. `automatic` maps where it can.
enum class WindowPath : std::uint8_t { automatic, mapped, rma };

/// What another rank needs in order to open a window: an address and the fabric's own key.
struct RegionKey {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::vector<std::byte> packed;
  FileLocation file = {};
};

/// Memory that other ranks may read and write. Zeroed, page-aligned. Freed with the object, while peers that
/// mapped it keep their mapping.
class Region {
 public:
  virtual ~Region() = default;
  virtual std::span<std::byte> memory() noexcept = 0;
  virtual RegionKey key() const = 0;
};

/// Remote memory. On the same host it is mapped: `mapped()` is a plain pointer and put/get are copies.
/// Elsewhere it is RMA. An access to a dead rank's mapped memory succeeds: ask Peer::failed.
class Window {
 public:
  virtual ~Window() = default;

  /// The memory itself, or nullptr when only put and get reach it.
  std::byte* mapped() const noexcept { return mapped_; }
  std::uint64_t length() const noexcept { return length_; }

  /// Starts a write. `data` may be reused on return. Ordered with later puts only by `fence`. An aligned
  /// 64-bit word arrives in one piece; so it is read by `get`. REQUIRES, here and below: all of it within the
  /// window.
  virtual void put(std::uint64_t offset, Bytes data) = 0;
  /// Reads; waits for the answer until `deadline`.
  virtual void get(std::uint64_t offset, std::span<std::byte> out, Deadline deadline) = 0;
  /// Adds to a 64-bit word at the owner and returns what was there. Every rank must use the same kind of
  /// window for one word: an HCA's atomics and a CPU's are not coherent with each other.
  virtual std::uint64_t fetch_add(std::uint64_t offset, std::uint64_t delta, Deadline deadline) = 0;
  /// Puts before it arrive before puts after it.
  virtual void fence() = 0;
  /// Returns when all puts have arrived.
  virtual void flush(Deadline deadline) = 0;

 protected:
  /// An access outside of the window is a broken promise.
  void require_inside(std::uint64_t offset, std::uint64_t bytes) const;
  /// An aligned 64-bit word, which is moved in one piece.
  static bool is_word(std::uint64_t offset, std::uint64_t bytes) noexcept {
    return bytes == sizeof(std::uint64_t) && offset % sizeof(std::uint64_t) == 0;
  }

  std::byte* mapped_ = nullptr;
  std::uint64_t length_ = 0;
};

/// Another rank, as seen from one Fabric.
class Peer {
 public:
  virtual ~Peer() = default;

  int rank() const noexcept { return rank_; }
  /// "ps 1 (rank 2 on node17)": what error messages call it.
  const std::string& name() const noexcept { return name_; }
  /// True from the moment that the transport has seen it die, or a wait for it ran out.
  bool failed() const noexcept { return failed_; }
  /// Throws Error(unavailable) naming the peer when it has failed.
  void require_alive() const;

  /// Sends an active message; `header` and `payload` may be reused on return. Messages to one peer arrive in
  /// order. Never blocks. A message to a peer that has failed is dropped: on_failure has said so.
  virtual void send(std::uint16_t type, Bytes header, Bytes payload = {}) = 0;
  /// The same without a copy of `payload`, which must stay as it is until `in_flight` has come down again: it
  /// is raised by one here, and lowered inside progress() when the transport has done with the payload, or
  /// the peer has failed. `in_flight` outlives the peer's fabric or that moment. `header`: at most
  /// kInPlaceHeader bytes.
  virtual void send_in_place(std::uint16_t type, Bytes header, Bytes payload, std::uint32_t& in_flight) = 0;

  /// Ends the connection by force, and with it every send and access that is under way. The peer counts as
  /// failed.
  virtual void give_up() noexcept = 0;

  /// It is known to be gone, though the transport has not seen it die: waits end. Also inside progress().
  void count_as_failed() noexcept { failed_ = true; }

  /// Connects anew, to the process that has taken the place of the one that was there, and may have another
  /// name (that is, host). Windows that are not
  /// mapped are of no use any more. Not inside progress(). Throws Error(unimplemented) between threads of one
  /// process.
  virtual void revive(Bytes address, const std::string& name);

  /// Throws Error(unavailable) when `path` is `mapped` and the memory cannot be mapped.
  virtual std::unique_ptr<Window> open_window(const RegionKey& key, WindowPath path) = 0;

  /// What carries the data, for the log: "tcp", "loop", "rc_mlx5".
  virtual std::string transports() const = 0;
  /// The adapter reads and writes the peer's memory by itself. Otherwise RMA is emulated by its CPU, and
  /// active messages move more.
  virtual bool has_hardware_rma() const = 0;

 protected:
  Peer(int rank, std::string name) : rank_(rank), name_(std::move(name)) {}

  int rank_;
  std::string name_;
  bool failed_ = false;
};

/// An active message as its handler sees it. The spans die when the handler returns.
struct Message {
  std::uint16_t type = 0;
  int from = -1;  ///< rank of the sender
  Bytes header;
  Bytes payload;
};

/// Counts a message whose header does not have `expected` bytes, which its handler ignores, and logs the
/// first one of each type. Any thread.
void count_malformed(const Message& message, std::size_t expected) noexcept;
/// Number of calls of count_malformed in this process.
std::uint64_t malformed_messages() noexcept;

class Fabric {
 public:
  /// Runs inside progress(). May send; must not progress, wait, or throw.
  using Handler = std::function<void(const Message&)>;
  using FailureHandler = std::function<void(Peer&)>;

  virtual ~Fabric() = default;

  /// What another rank hands to `connect`.
  virtual std::vector<std::byte> address() const = 0;
  /// The rank that this fabric's messages are said to come from. Set once, before the first send.
  void set_rank(int rank) noexcept { rank_ = rank; }
  int rank() const noexcept { return rank_; }
  /// Messages carry this secret from now on, and a message that arrives without it is dropped before any
  /// handler. All zeros before. Does nothing between threads of one process. REQUIRES: no message was sent or
  /// received yet.
  virtual void set_secret(const JobSecret& /*secret*/) noexcept {}

  /// A new connection; it lives as long as the fabric. Two ends of one rank (its control and its data fabric)
  /// are two peers.
  virtual Peer& connect(int rank, const std::string& name, Bytes address) = 0;

  virtual std::unique_ptr<Region> allocate(std::size_t bytes) = 0;
  /// Registers mapped memory that outlives the region. It is as it is: neither zeroed nor freed. Throws
  /// Error(unimplemented) between threads of one process.
  virtual std::unique_ptr<Region> adopt(std::span<std::byte> memory, const FileLocation& place);

  /// Runs handlers of what has arrived. 0 means that nothing had.
  virtual unsigned progress() = 0;
  /// Before a `sleep`: false when something may have arrived already.
  virtual bool arm() = 0;
  /// Sleeps until something may have arrived, `wake` is called, or the time is over. Does not progress. The
  /// thread that armed may sleep while another has taken the fabric over.
  virtual void sleep(std::chrono::milliseconds timeout) = 0;
  void wait(std::chrono::milliseconds timeout) {
    if (arm()) sleep(timeout);
  }
  /// Windows read into, and write from, the memory of a GPU of this process as they do any other.
  virtual bool reaches_gpus() const { return false; }
  /// Ends a `sleep`, or the next one. From any thread.
  virtual void wake() noexcept = 0;
  /// What another process of this host passes to `ring` to wake this fabric. Empty where nobody needs to.
  virtual std::string doorbell() const { return {}; }
  /// Wakes the fabric whose `doorbell` that is. False when it cannot be reached this way: send a message.
  virtual bool ring(const std::string& /*bell*/) noexcept { return false; }

  /// One handler a message type. A message without a handler is logged and dropped, unless it is kept.
  void on_message(std::uint16_t type, Handler handler);
  /// Runs inside progress(), once for each peer that dies.
  void on_failure(FailureHandler handler) { failure_handler_ = std::move(handler); }
  /// Whether messages and failures that have no handler are kept until they have one; the next progress()
  /// then delivers them, in order. Of equal messages of one rank the last is kept, so that repeated ones take
  /// no more memory.
  void keep_unhandled(bool keep) noexcept { keeps_unhandled_ = keep; }
  /// Forgets all handlers, and all that was kept; what still arrives is dropped. For the end of what the
  /// handlers belong to.
  void silence() noexcept;
  /// The process ends soon after this object, and others may be connecting to it at any time: connections
  /// that are not this object's own are left to the end of the process.
  virtual void leave_the_rest_to_exit() noexcept {}

 protected:
  void deliver(const Message& message) noexcept;
  void report_failure(Peer& peer) noexcept;
  /// First in progress(): what was kept and has a handler now. Returns their number.
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

/// The handlers of one owner, which end with it; what arrives for them afterwards is dropped. To be used and
/// destroyed by the thread that progresses the fabric.
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
  /// Ends all of them now.
  void end() noexcept;

 private:
  Fabric& fabric_;
  std::vector<std::uint16_t> types_;
  bool failures_ = false;
};

/// Progresses `fabric` until `done()` or the deadline; true when done. Spins briefly, then sleeps.
bool progress_until(Fabric& fabric, Deadline deadline, const std::function<bool()>& done);

}  // namespace capstan::transport
