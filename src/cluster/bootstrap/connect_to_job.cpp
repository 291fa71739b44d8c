// connect_to_job.cpp -- one connection, one request, one answer, with a deadline.
#include "cluster/bootstrap/connect_to_job.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "capstan/serialize.hpp"
#include "cluster/bootstrap/run_directory.hpp"
#include "cluster/bootstrap/socket.hpp"

namespace capstan::cluster {
namespace {

using Clock = std::chrono::steady_clock;

/// Limit of an answer in bytes; a table of 100,000 ranks is smaller.
constexpr std::size_t kMaxAnswerBytes = 256 << 20;
constexpr std::chrono::milliseconds kBetweenAttempts{50};
/// The listener counts as dead if no data arrives for this long. It may be busy with other connections, and
/// sends a long answer in pieces.
constexpr std::chrono::seconds kMaxSilence{5};

class Visit {
 public:
  Visit(const std::string& address, Clock::time_point deadline)
      : address_(address),
        deadline_(deadline),
        socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    if (!socket_) throw call_failed("socket", std::strerror(errno));
    const sockaddr_in to = address_in(address);
    int error = connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      wait_for(POLLOUT);
      socklen_t length = sizeof error;
      (void)getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error != 0) throw lost(std::strerror(error));
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        wait_for(POLLOUT);
      } else if (errno != EINTR) {
        throw lost(reason(errno));
      }
    }
  }

  void read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (got == 0) throw lost(reason(EPIPE));
      if (got > 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(got));
      } else if (errno == EAGAIN) {
        wait_for(POLLIN);
      } else if (errno != EINTR) {
        throw lost(reason(errno));
      }
    }
  }

 private:
  /// A listener that rejects the token closes the connection, which this side sees as EPIPE or ECONNRESET.
  static std::string reason(int error) {
    const bool closed = error == EPIPE || error == ECONNRESET;
    return closed ? "it closed the connection (wrong token?)" : std::strerror(error);
  }
  void wait_for(short events) {
    pollfd one{socket_.get(), events, 0};
    const auto left = std::min(std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()),
                               std::chrono::milliseconds(kMaxSilence));
    const int ready = left.count() > 0 ? poll(&one, 1, static_cast<int>(left.count())) : 0;
    if (ready == 0) {
      throw Error(Code::deadline_exceeded,
                  "the coordinator's join listener at " + address_ + " does not answer");
    }
  }
  Error lost(const std::string& why) const {
    return Error(Code::unavailable, "the coordinator's join listener at " + address_ + ": " + why);
  }

  const std::string& address_;
  Clock::time_point deadline_;
  Socket socket_;
};

}  // namespace

JoinAnswer ask_join_listener(const std::string& address, const Token& token, JoinRequest request,
                             std::span<const std::byte> body, Clock::time_point deadline) {
  Visit visit(address, deadline);
  std::vector<std::byte> question = greeting_bytes(request, token);
  if (has_body(request)) {
    const auto framed_body = framed(body);
    question.insert(question.end(), framed_body.begin(), framed_body.end());
  }
  visit.write(question);
  std::array<std::byte, kLengthBytes> length{};
  visit.read(length);
  const std::size_t size = length_in(length);
  if (size > kMaxAnswerBytes) {
    throw Error(Code::data_loss, "the process that listens at " + address + " is not a join listener");
  }
  std::vector<std::byte> answer(size);
  visit.read(answer);
  return from_bytes<JoinAnswer>(answer);
}

Table join_late(const std::filesystem::path& run_dir, const Hello& hello, std::chrono::milliseconds timeout) {
  const auto body = to_bytes(hello);
  const auto deadline = Clock::now() + timeout;
  const bool job_was_found = std::getenv(kJobRunsVariable) != nullptr;
  while (true) {
    try {
      const RunFile file = read_run_file(run_dir);
      const JoinAnswer answer =
          ask_join_listener(file.address, file.token, JoinRequest::join, body, deadline);
      if (answer.code != Code::ok) throw Error(answer.code, answer.message);
      return from_bytes<Table>(answer.bytes);
    } catch (const Error& error) {
      const bool may_retry = error.code() == Code::not_found || error.code() == Code::unavailable ||
                             error.code() == Code::deadline_exceeded;
      if (!may_retry) throw;
      // The run file stays while a coordinator restarts, and is removed when the job ends.
      if (job_was_found && error.code() == Code::not_found) {
        throw Error(Code::not_found,
                    "cannot join the job of " + run_dir.string() + ": it has ended (" + error.what() + ")");
      }
      if (Clock::now() + kBetweenAttempts < deadline) {
        std::this_thread::sleep_for(kBetweenAttempts);
        continue;
      }
      throw Error(Code::deadline_exceeded, "waited " + std::to_string(timeout.count()) +
                                               " ms to join the job of " + run_dir.string() +
                                               " (--start-timeout): " + error.what());
    }
  }
}

}  // namespace capstan::cluster
