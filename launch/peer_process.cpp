// peer_process.cpp -- both ends of the probe: the child that serves and the parent that connects.
#include "launch/peer_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/supervisor/agent_pipe.hpp"

namespace capstan::launch {
namespace {

constexpr std::uint16_t kRequest = 1;  // payload: the UCX address for the reply
constexpr std::uint16_t kReply = 2;
constexpr std::uint64_t kPattern = 0x6e65696768626f72;  // an arbitrary value that fresh memory does not have

/// Addresses of the child.
struct Contact {
  std::vector<std::byte> address;
  std::uint64_t region_address = 0;
  std::uint64_t region_length = 0;
  std::vector<std::byte> region_key;
};

bool closed(int pipe_end) {
  pollfd fd{pipe_end, POLLIN, 0};
  return poll(&fd, 1, 0) > 0;
}

/// Throws Error(deadline_exceeded) with its own message, since the message of receive_value() refers to
/// --start-timeout, which has no effect here.
Contact receive_contact(int from_child, std::chrono::milliseconds timeout) {
  try {
    return cluster::receive_value<Contact>(from_child, transport::deadline_in(timeout),
                                           "the second process on this host");
  } catch (const Error& error) {
    if (error.code() != Code::deadline_exceeded) throw;
    throw Error(Code::deadline_exceeded,
                "the second process on this host did not open UCX within " + std::to_string(timeout.count()) +
                    " ms; run ucx_info -d: a device of UCX_NET_DEVICES may hang, or the host is overloaded");
  }
}

/// Replies to requests until the parent closes its end of the pipe.
void serve(int from_parent, int to_parent) {
  transport::UcxFabric fabric;
  fabric.set_rank(1);
  const auto region = fabric.allocate(4096);
  std::memcpy(region->memory().data(), &kPattern, sizeof kPattern);
  std::vector<std::byte> answer_to;
  fabric.on_message(kRequest, [&](const transport::Message& message) {
    answer_to.assign(message.payload.begin(), message.payload.end());
  });
  const transport::RegionKey key = region->key();
  cluster::send_value(to_parent, Contact{fabric.address(), key.address, key.length, key.packed});
  while (!closed(from_parent)) {
    if (fabric.progress() == 0) fabric.wait(std::chrono::milliseconds(20));
    if (answer_to.empty()) continue;
    fabric.connect(0, "this process", std::exchange(answer_to, {})).send(kReply, {});
  }
}

}  // namespace

PeerProcess::PeerProcess(const std::function<void()>& before_serving) {
  cluster::Pipe up = cluster::open_pipe();
  cluster::Pipe down = cluster::open_pipe();
  std::fflush(nullptr);  // or both processes would print the buffered output
  child_ = fork();
  if (child_ < 0) throw call_failed("fork", std::strerror(errno));
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    up.read_end.reset();
    down.write_end.reset();
    try {
      before_serving();
      serve(down.read_end.get(), up.write_end.get());
    } catch (const std::exception&) {
      _exit(1);  // the parent opens UCX in the same way, gets the same error and reports it
    }
    _exit(0);
  }
  from_child_ = std::move(up.read_end);
  to_child_ = std::move(down.write_end);
}

PeerProcess::~PeerProcess() {
  to_child_.reset();
  from_child_.reset();
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

PeerRoute PeerProcess::probe(transport::WindowPath path, std::chrono::milliseconds timeout) {
  transport::UcxFabric fabric;
  fabric.set_rank(0);
  const Contact contact = receive_contact(from_child_.get(), timeout);
  transport::Peer& peer = fabric.connect(1, "a second process on this host", contact.address);
  bool answered = false;
  fabric.on_message(kReply, [&](const transport::Message&) { answered = true; });
  peer.send(kRequest, {}, fabric.address());
  transport::progress_until(fabric, transport::deadline_in(timeout),
                            [&] { return answered || peer.failed(); });
  if (!answered) {
    throw Error(Code::internal,
                "UCX cannot connect to " + peer.name() +
                    ": a ps needs a network transport (tcp, rc, dc) in UCX_TLS and a device in "
                    "UCX_NET_DEVICES, even if its memory is mapped");
  }
  const auto window =
      peer.open_window({contact.region_address, contact.region_length, contact.region_key}, path);
  PeerRoute route{window->mapped() != nullptr, peer.has_hardware_rma(), peer.transports()};
  if (route.mapped) {
    std::uint64_t word = 0;
    std::memcpy(&word, window->mapped(), sizeof word);
    if (word != kPattern)
      throw Error(Code::internal,
                  "the mapped memory of " + peer.name() + " does not have the pattern that it wrote");
  }
  return route;
}

}  // namespace capstan::launch
