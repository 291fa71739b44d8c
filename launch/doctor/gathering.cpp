// gathering.cpp -- two processes on one host: a pair of sockets.
#include "launch/doctor/gathering.hpp"

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

constexpr int kLookMilliseconds = 20;

class TwoProcesses final : public Gathering {
 public:
  TwoProcesses(int rank, cluster::Socket socket, pid_t child)
      : rank_(rank), socket_(std::move(socket)), child_(child) {}
  ~TwoProcesses() override {
    socket_.reset();
    if (child_ <= 0) return;
    // It ends by itself when this end is closed; one that hangs in UCX does not.
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
                           const std::function<void()>& meanwhile, bool) override {
    // Of a child that waits for its parent's checks the parent takes care, and the system when the parent
    // dies.
    const auto deadline = Clock::now() + (rank_ == 0 ? kTimeout : std::chrono::hours(1));
    const std::uint64_t bytes = mine.size();
    send({reinterpret_cast<const std::byte*>(&bytes), sizeof bytes});
    send(mine);
    std::uint64_t coming = 0;
    receive({reinterpret_cast<std::byte*>(&coming), sizeof coming}, what, meanwhile, deadline);
    Blob theirs(coming);
    receive(theirs, what, meanwhile, deadline);
    Blob own(mine.begin(), mine.end());
    std::vector<Blob> all;
    all.push_back(rank_ == 0 ? std::move(own) : std::move(theirs));
    all.push_back(rank_ == 0 ? std::move(theirs) : std::move(own));
    return all;
  }

 private:
  [[noreturn]] void end_of_other(const std::string& what) const {
    throw Error(Code::unavailable, "the second process has ended; waited for: " + what);
  }

  /// A few KiB, which the socket's buffer takes.
  void send(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t put = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) end_of_other("what it is to be told");
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }

  void receive(std::span<std::byte> to, const std::string& what, const std::function<void()>& meanwhile,
               Clock::time_point deadline) const {
    while (!to.empty()) {
      if (meanwhile) meanwhile();
      pollfd fd{socket_.get(), POLLIN, 0};
      const int ready = poll(&fd, 1, meanwhile ? 0 : kLookMilliseconds);
      if (Clock::now() > deadline)
        throw Error(Code::deadline_exceeded, "the second process hangs; waited for: " + what);
      if (ready <= 0) continue;
      const ssize_t got = recv(socket_.get(), to.data(), to.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) end_of_other(what);
      to = to.subspan(static_cast<std::size_t>(got));
    }
  }

  int rank_;
  cluster::Socket socket_;
  pid_t child_;  // of rank 0; of rank 1 it is 0
};

}  // namespace

std::unique_ptr<Gathering> gather_with_a_second_process(const std::function<void(Gathering&)>& live) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw call_failed("socketpair", std::strerror(errno));
  cluster::Socket parents(ends[0]);
  cluster::Socket childs(ends[1]);
  std::fflush(nullptr);  // or both would print what is buffered
  const pid_t child = fork();
  if (child < 0) throw call_failed("fork", std::strerror(errno));
  if (child > 0) return std::make_unique<TwoProcesses>(0, std::move(parents), child);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  parents.reset();
  try {
    TwoProcesses second(1, std::move(childs), 0);
    live(second);
  } catch (const std::exception&) {
    _exit(1);  // the parent notices, and says so
  }
  _exit(0);
}

}  // namespace capstan::launch::doctor
