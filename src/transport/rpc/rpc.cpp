// rpc.cpp -- numbers calls, waits for answers, answers requests.
#include "transport/rpc/rpc.hpp"

#include "transport/bytes.hpp"

namespace capstan::transport {
namespace {

struct ReplyHeader {
  RpcClient::Id id;
  std::uint64_t code;  // of capstan::Code; 0 is success
};

}  // namespace

RpcClient::RpcClient(Fabric& fabric) : fabric_(fabric) {
  fabric_.on_message(kReply, [this](const Message& message) {
    const auto header = read_header<ReplyHeader>(message);
    if (!header) return;
    const auto found = calls_.find(header->id);
    if (found == calls_.end()) return;  // its wait has timed out
    found->second.done = true;
    found->second.code = static_cast<std::uint8_t>(header->code);
    found->second.payload.assign(message.payload.begin(), message.payload.end());
  });
}

RpcClient::Id RpcClient::start(Peer& peer, std::uint16_t type, Bytes request) {
  peer.require_alive();
  const Id id = next_++;
  calls_[id] = Call{&peer, peer.revivals(), false, 0, {}};
  peer.send(type, as_bytes(id), request);
  return id;
}

RpcOutcome RpcClient::outcome(Id id, std::chrono::milliseconds timeout, const std::string& what) {
  Call& call = calls_.at(id);
  progress_until(fabric_, deadline_in(timeout), [&] { return call.done || call.peer->failed(); });
  Call finished = std::move(call);
  calls_.erase(id);
  if (!finished.done) {
    const std::string& name = finished.peer->name();
    if (finished.dead()) return {{}, Error(Code::unavailable, name + " is dead; it was asked to " + what)};
    return {{},
            Error(Code::deadline_exceeded, "no answer from " + name + " to " + what + " within " +
                                               std::to_string(timeout.count()) + " ms")};
  }
  if (finished.code != 0) {
    const auto* text = reinterpret_cast<const char*>(finished.payload.data());
    return {{}, Error(static_cast<Code>(finished.code), std::string(text, finished.payload.size()))};
  }
  return {std::move(finished.payload), {}};
}

std::vector<std::byte> RpcClient::wait(Id id, std::chrono::milliseconds timeout, const std::string& what) {
  RpcOutcome outcome = this->outcome(id, timeout, what);
  if (outcome.error) throw *outcome.error;
  return std::move(outcome.answer);
}

void RpcServer::serve(std::uint16_t type, Handler handler) {
  handlers_[type] = std::move(handler);
  fabric_.on_message(type, [this](const Message& message) {
    const auto id = read_header<RpcClient::Id>(message);
    if (!id) return;
    requests_.push_back({message.type, message.from, *id, {message.payload.begin(), message.payload.end()}});
  });
}

bool RpcServer::answer_pending() {
  if (requests_.empty()) return false;
  while (!requests_.empty()) {
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    answering_ = request.from;
    ReplyHeader header{request.id, 0};
    std::vector<std::byte> answer;
    const auto refuse = [&](Code code, std::string_view text) {
      header.code = static_cast<std::uint64_t>(code);
      const auto bytes = std::as_bytes(std::span(text));
      answer.assign(bytes.begin(), bytes.end());
    };
    try {
      if (!admits_(request.from)) {
        throw Error(Code::aborted, "this rank counts as dead; its requests are refused");
      }
      answer = handlers_.at(request.type)(request.from, request.payload);
    } catch (const Error& error) {
      refuse(error.code(), error.what());
    } catch (const std::exception& error) {
      refuse(Code::internal, error.what());
    }
    if (answering_) find_peer_(request.from).send(kReply, as_bytes(header), answer);
  }
  answering_.reset();
  return true;
}

}  // namespace capstan::transport
