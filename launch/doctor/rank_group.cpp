// rank_group.cpp -- a rank group of two processes, connected by a socket pair.
#include "launch/doctor/rank_group.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>

#include "capstan/error.hpp"
#include "cluster/bootstrap/socket.hpp"

namespace capstan::launch::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMilliseconds = 20;

class ForkedPair final : public RankGroup {
 public:
  ForkedPair(int rank, cluster::Socket socket, pid_t child)
      : rank_(rank), socket_(std::move(socket)), child_(child) {}
  ~ForkedPair() override {
    socket_.reset();
    if (child_ <= 0) return;
    // The child exits when this end is closed, unless it hangs in UCX.
    const auto deadline = Clock::now() + std::chrono::seconds(2);
    while (waitpid(child_, nullptr, WNOHANG) == 0) {
      if (Clock::now() > deadline) {
        (void)kill(child_, SIGKILL);
        (void)waitpid(child_, nullptr, 0);
        return;
      }
      (void)poll(nullptr, 0, 2);
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return 2; }

 protected:
  std::vector<Blob> gather(std::span<const std::byte> mine, const std::string& what,
                           const std::function<void()>& progress, bool) override {
    // The child waits long, since its parent runs its checks first. The parent kills a child that hangs, and
    // PR_SET_PDEATHSIG kills it if the parent dies.
    const auto deadline = Clock::now() + (rank_ == 0 ? kTimeout : std::chrono::hours(1));
    const std::uint64_t bytes = mine.size();
    send({reinterpret_cast<const std::byte*>(&bytes), sizeof bytes});
    send(mine);
    std::uint64_t size_of_theirs = 0;
    receive({reinterpret_cast<std::byte*>(&size_of_theirs), sizeof size_of_theirs}, what, progress, deadline);
    Blob theirs(size_of_theirs);
    receive(theirs, what, progress, deadline);
    Blob own(mine.begin(), mine.end());
    std::vector<Blob> all;
    all.push_back(rank_ == 0 ? std::move(own) : std::move(theirs));
    all.push_back(rank_ == 0 ? std::move(theirs) : std::move(own));
    return all;
  }

 private:
  [[noreturn]] void throw_dead_peer(const std::string& what) const {
    throw Error(Code::unavailable, "the second process died; waiting for: " + what);
  }

  /// Does not block: a few KiB fit into the socket buffer.
  void send(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t put = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) throw_dead_peer("sending data to it");
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }

  void receive(std::span<std::byte> to, const std::string& what, const std::function<void()>& progress,
               Clock::time_point deadline) const {
    while (!to.empty()) {
      if (progress) progress();
      pollfd fd{socket_.get(), POLLIN, 0};
      const int ready = poll(&fd, 1, progress ? 0 : kPollMilliseconds);
      if (Clock::now() > deadline)
        throw Error(Code::deadline_exceeded, "the second process hangs; waiting for: " + what);
      if (ready <= 0) continue;
      const ssize_t got = recv(socket_.get(), to.data(), to.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw_dead_peer(what);
      to = to.subspan(static_cast<std::size_t>(got));
    }
  }

  int rank_;
  cluster::Socket socket_;
  pid_t child_;  // 0 on rank 1
};

}  // namespace

std::unique_ptr<RankGroup> fork_rank_group(const std::function<void(RankGroup&)>& child_main) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw call_failed("socketpair", std::strerror(errno));
  cluster::Socket parents(ends[0]);
  cluster::Socket childs(ends[1]);
  std::fflush(nullptr);  // or both processes would print the buffered output
  const pid_t child = fork();
  if (child < 0) throw call_failed("fork", std::strerror(errno));
  if (child > 0) return std::make_unique<ForkedPair>(0, std::move(parents), child);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  parents.reset();
  try {
    ForkedPair second(1, std::move(childs), 0);
    child_main(second);
  } catch (const std::exception&) {
    _exit(1);  // the parent detects it and reports it
  }
  _exit(0);
}

}  // namespace capstan::launch::doctor
