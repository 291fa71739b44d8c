// neighbour.cpp -- the child's side and the parent's.
#include "launch/neighbour.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "transport/bytes.hpp"

namespace capstan::launch {
namespace {

constexpr std::uint16_t kQuestion = 1;  // payload: the address to answer to
constexpr std::uint16_t kAnswer = 2;
constexpr std::uint64_t kWritten = 0x6e65696768626f72;  // any number that fresh memory does not hold
constexpr std::chrono::seconds kPatience{10};

/// What the child says of itself.
struct Contact {
  std::vector<std::byte> address;
  std::uint64_t region_address = 0;
  std::uint64_t region_length = 0;
  std::vector<std::byte> region_key;
};

/// Whole, or nothing when the other end has gone.
bool read_all(int from, void* to, std::size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t got = ::read(from, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

void write_all(int to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(to, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw call_failed("write", std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

bool closed(int pipe_end) {
  pollfd fd{pipe_end, POLLIN, 0};
  return poll(&fd, 1, 0) > 0;
}

/// Answers whoever asks, until the parent closes its end.
void live(int from_parent, int to_parent) {
  transport::UcxFabric fabric;
  fabric.set_rank(1);
  const auto region = fabric.allocate(4096);
  std::memcpy(region->memory().data(), &kWritten, sizeof kWritten);
  std::vector<std::byte> answer_to;
  fabric.on_message(kQuestion, [&](const transport::Message& message) {
    answer_to.assign(message.payload.begin(), message.payload.end());
  });
  const transport::RegionKey key = region->key();
  const auto contact = to_bytes(Contact{fabric.address(), key.address, key.length, key.packed});
  const std::uint64_t size = contact.size();
  write_all(to_parent, transport::as_bytes(size));
  write_all(to_parent, contact);
  while (!closed(from_parent)) {
    if (fabric.progress() == 0) fabric.wait(std::chrono::milliseconds(20));
    if (answer_to.empty()) continue;
    fabric.connect(0, "this process", std::exchange(answer_to, {})).send(kAnswer, {});
  }
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw call_failed("pipe2", std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
};

}  // namespace

Neighbour::Neighbour() {
  const Pipe up;
  const Pipe down;
  std::fflush(nullptr);  // or both would print what is buffered
  child_ = fork();
  if (child_ < 0) throw call_failed("fork", std::strerror(errno));
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(up.read_end);
    close(down.write_end);
    try {
      live(down.read_end, up.write_end);
    } catch (const std::exception&) {
      _exit(1);  // the parent, which opens UCX in the same way, finds the same and says so
    }
    _exit(0);
  }
  close(up.write_end);
  close(down.read_end);
  from_child_ = up.read_end;
  to_child_ = down.write_end;
}

Neighbour::~Neighbour() {
  close(to_child_);
  close(from_child_);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

NeighbourWay Neighbour::try_to_reach(transport::WindowPath path) {
  transport::UcxFabric fabric;
  fabric.set_rank(0);
  std::uint64_t size = 0;
  std::vector<std::byte> bytes;
  const bool there = read_all(from_child_, &size, sizeof size);
  if (there) bytes.resize(size);
  if (!there || !read_all(from_child_, bytes.data(), bytes.size())) {
    throw Error(Code::unavailable, "the second process, which was to be connected to, has ended");
  }
  const auto contact = from_bytes<Contact>(bytes);
  transport::Peer& peer = fabric.connect(1, "a second process on this host", contact.address);
  bool answered = false;
  fabric.on_message(kAnswer, [&](const transport::Message&) { answered = true; });
  peer.send(kQuestion, {}, fabric.address());
  transport::progress_until(fabric, transport::deadline_in(kPatience),
                            [&] { return answered || peer.failed(); });
  if (!answered) {
    throw Error(Code::internal, "UCX does not reach " + peer.name() +
                                    ": ps need a network transport (tcp, rc, dc) in UCX_TLS and a device in "
                                    "UCX_NET_DEVICES, even where their memory is mapped");
  }
  const auto window =
      peer.open_window({contact.region_address, contact.region_length, contact.region_key}, path);
  NeighbourWay way{window->mapped() != nullptr, peer.has_hardware_rma(), peer.transports()};
  if (way.mapped) {
    std::uint64_t word = 0;
    std::memcpy(&word, window->mapped(), sizeof word);
    if (word != kWritten)
      throw Error(Code::internal, "the memory of " + peer.name() + " is mapped, and is not its own");
  }
  return way;
}

}  // namespace capstan::launch
