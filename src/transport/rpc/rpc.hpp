// rpc.hpp -- calls with an answer, over active messages. For control traffic; pulls and pushes do not use it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "transport/fabric.hpp"
#include "transport/message_types.hpp"

namespace capstan::transport {

/// Outcome of a call: the answer, or the error with which the call failed.
struct [[nodiscard]] RpcOutcome {
  std::vector<std::byte> answer;
  std::optional<Error> error;

  /// Returns true if the peer has died or has not answered in time. It may or may not have executed the call.
  bool unanswered() const noexcept {
    return error && (error->code() == Code::unavailable || error->code() == Code::deadline_exceeded);
  }
};

/// The caller's end. One for each fabric, used by the thread that owns it.
class RpcClient {
 public:
  using Id = std::uint64_t;

  explicit RpcClient(Fabric& fabric);
  ~RpcClient() { fabric_.remove_handlers(); }
  RpcClient(const RpcClient&) = delete;
  RpcClient& operator=(const RpcClient&) = delete;

  /// Starts a call; several may be in flight. Throws Error(unavailable) if the peer is known to be dead.
  Id start(Peer& peer, std::uint16_t type, Bytes request);
  /// Discards a call whose answer is no longer needed.
  void cancel(Id id) noexcept { calls_.erase(id); }
  /// Waits until the call is answered, the peer dies or is replaced (Error(unavailable)) or `timeout` passes
  /// (Error(deadline_exceeded), "no answer from ps 1 (rank 2 on n4) to create variable \"w\" within 60000
  /// ms"). Any other error was raised by the peer.
  RpcOutcome outcome(Id id, std::chrono::milliseconds timeout, const std::string& what);
  /// Like outcome(); returns the answer and throws the error.
  std::vector<std::byte> wait(Id id, std::chrono::milliseconds timeout, const std::string& what);

  std::vector<std::byte> call(Peer& peer, std::uint16_t type, Bytes request,
                              std::chrono::milliseconds timeout, const std::string& what) {
    return wait(start(peer, type, request), timeout, what);
  }

 private:
  struct Call {
    Peer* peer;
    std::uint32_t revivals;  // of the peer, when the call was sent
    bool done = false;

    bool dead() const noexcept { return peer->failed() || peer->revivals() != revivals; }
    std::uint8_t code = 0;
    std::vector<std::byte> payload;
  };

  Fabric& fabric_;
  Id next_ = 1;
  std::map<Id, Call> calls_;
};

/// The answering end. Requests are queued as they arrive; `answer_pending` answers them outside of
/// progress(), so that a handler may block or do I/O.
class RpcServer {
 public:
  /// Returns the answer. An Error that it throws is sent to the caller.
  using Handler = std::function<std::vector<std::byte>(int from, Bytes request)>;
  using FindPeer = std::function<Peer&(int rank)>;
  using Admits = std::function<bool(int rank)>;

  /// `find_peer` connects back to a caller. A rank that `admits` refuses is answered with Error(aborted).
  RpcServer(
      Fabric& fabric, FindPeer find_peer, Admits admits = [](int) { return true; })
      : fabric_(fabric), find_peer_(std::move(find_peer)), admits_(std::move(admits)) {}

  void serve(std::uint16_t type, Handler handler);
  /// Drops the unanswered requests of `rank`, whose process was replaced. May be called inside a handler.
  void forget(int rank) {
    std::erase_if(requests_, [rank](const Request& request) { return request.from == rank; });
    if (answering_ == rank) answering_.reset();
  }
  /// Answers the pending requests. Returns true if there were any.
  bool answer_pending();

 private:
  struct Request {
    std::uint16_t type;
    int from;
    RpcClient::Id id;
    std::vector<std::byte> payload;
  };

  Fabric& fabric_;
  FindPeer find_peer_;
  Admits admits_;
  std::map<std::uint16_t, Handler> handlers_;
  std::deque<Request> requests_;
  std::optional<int> answering_;  // rank whose request a handler is processing
};

}  // namespace capstan::transport
