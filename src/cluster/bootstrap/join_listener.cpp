// join_listener.cpp -- one thread, poll(2), and limits on connections.
#include "cluster/bootstrap/join_listener.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "capstan/serialize.hpp"

namespace capstan::cluster {
namespace {

using Clock = std::chrono::steady_clock;
using State = JoinHandshake::State;

/// Maximum number of connections accepted in one round, and the pause after so many: a client that opens
/// connections endlessly costs only a few percent of a core.
constexpr int kAcceptsATurn = 16;
constexpr std::chrono::milliseconds kAfterMany{5};
constexpr std::chrono::milliseconds kAfterNoDescriptor{100};
/// Interval between two log lines about refused connections.
constexpr std::chrono::seconds kBetweenLines{10};

struct Connection {
  Socket socket;
  JoinHandshake visit;
  Clock::time_point until;
  sockaddr_in from{};
  std::vector<std::byte> answer = {};
  std::size_t sent = 0;

  bool stranger() const noexcept { return visit.state() == State::greeting; }
};

/// Logs refused connections, in at most one line per kBetweenLines.
class Refusals {
 public:
  ~Refusals() {
    if (unlogged_ > 0) log::warn("join listener: {} more connections were refused", unlogged_);
  }
  void add(const Connection& visitor, std::string_view reason) {
    ++unlogged_;
    const auto now = Clock::now();
    if (now < next_line_) return;
    next_line_ = now + kBetweenLines;
    log::warn("join listener: the connection from {} is refused: {}{}", to_string(visitor.from), reason,
              unlogged_ > 1 ? fmt::format(" ({} others since the last such line)", unlogged_ - 1) : "");
    unlogged_ = 0;
  }

 private:
  std::size_t unlogged_ = 0;
  Clock::time_point next_line_{};
};

class ConnectionLoop {
 public:
  ConnectionLoop(int listener, int wake, const Token& token, JoinListener::Answer answer,
                 JoinListener::Limits limits)
      : listener_(listener), wake_(wake), token_(token), answer_(std::move(answer)), limits_(limits) {
    visitors_.reserve(limits.strangers + limits.guests);
    polled_.reserve(visitors_.capacity() + 2);
  }

  void run() {
    while (true) {
      poll_sockets();
      if (polled_[0].revents != 0) return;
      // New connections are appended behind those that poll() has checked.
      for (std::size_t i = 0; i + 2 < polled_.size(); ++i) {
        if (polled_[i + 2].revents != 0 && !serve(visitors_[i])) visitors_[i].socket.reset();
      }
      close_expired();
      std::erase_if(visitors_, [](const Connection& visitor) { return !visitor.socket; });
      if (polled_[1].revents != 0) accept_connections();
    }
  }

 private:
  void poll_sockets() {
    const auto now = Clock::now();
    const bool listens = now >= listens_from_;
    auto next = listens ? Clock::time_point::max() : listens_from_;
    polled_.assign({{wake_, POLLIN, 0}, {listens ? listener_ : -1, POLLIN, 0}});
    for (const Connection& visitor : visitors_) {
      polled_.push_back(
          {visitor.socket.get(), static_cast<short>(visitor.answer.empty() ? POLLIN : POLLOUT), 0});
      next = std::min(next, visitor.until);
    }
    int wait = -1;
    if (next != Clock::time_point::max()) {
      wait = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(next - now).count());
    }
    if (poll(polled_.data(), polled_.size(), std::max(wait, next == Clock::time_point::max() ? -1 : 0)) < 0) {
      for (pollfd& one : polled_) one.revents = 0;  // interrupted by a signal
    }
  }

  void accept_connections() {
    for (int i = 0; i < kAcceptsATurn; ++i) {
      sockaddr_in from{};
      socklen_t length = sizeof from;
      Socket socket(
          accept4(listener_, reinterpret_cast<sockaddr*>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          listens_from_ = Clock::now() + kAfterNoDescriptor;
          drop_oldest_stranger("this process has no file descriptor left");
        }
        return;
      }
      const auto strangers = std::count_if(visitors_.begin(), visitors_.end(),
                                           [](const Connection& visitor) { return visitor.stranger(); });
      if (static_cast<std::size_t>(strangers) >= limits_.strangers) {
        drop_oldest_stranger("too many connections had not sent the token, and this one was the oldest");
      }
      visitors_.push_back({std::move(socket), JoinHandshake(token_), Clock::now() + limits_.timeout, from});
      if (!serve(visitors_.back())) visitors_.pop_back();
    }
    listens_from_ = Clock::now() + kAfterMany;
  }

  void drop_oldest_stranger(std::string_view reason) {
    const auto oldest = std::find_if(visitors_.begin(), visitors_.end(),
                                     [](const Connection& visitor) { return visitor.stranger(); });
    if (oldest == visitors_.end()) return;
    refusals_.add(*oldest, reason);
    visitors_.erase(oldest);
  }

  void close_expired() {
    const auto now = Clock::now();
    for (Connection& visitor : visitors_) {
      if (!visitor.socket || now < visitor.until) continue;
      refusals_.add(visitor, visitor.stranger() ? "it did not send the token in time" : "it takes too long");
      visitor.socket.reset();
    }
  }

  /// Returns false if the connection is finished.
  bool serve(Connection& visitor) {
    if (visitor.answer.empty()) {
      // Bytes beyond the limit of a request are never read.
      const bool stranger = visitor.stranger();
      const std::size_t most = stranger ? kGreetingBytes : buffer_.size();
      const ssize_t got = recv(visitor.socket.get(), buffer_.data(), most, 0);
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      if (got == 0) return false;
      visitor.visit.take(std::span(buffer_).first(static_cast<std::size_t>(got)));
      if (stranger && !visitor.stranger() && too_many_guests()) {
        refusals_.add(visitor, "too many other connections are being answered");
        return false;
      }
      if (visitor.visit.state() == State::refused) {
        refusals_.add(visitor, visitor.visit.reason());
        return false;
      }
      if (visitor.visit.state() != State::asked) return true;
      visitor.answer = answer_to(visitor);
    }
    const auto left = std::span(visitor.answer).subspan(visitor.sent);
    const ssize_t sent = send(visitor.socket.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    visitor.sent += static_cast<std::size_t>(sent);
    visitor.until = Clock::now() + limits_.timeout;
    return visitor.sent < visitor.answer.size();
  }

  bool too_many_guests() const {
    const auto guests = std::count_if(visitors_.begin(), visitors_.end(), [](const Connection& visitor) {
      return visitor.socket && !visitor.stranger();
    });
    return static_cast<std::size_t>(guests) > limits_.guests;
  }

  std::vector<std::byte> answer_to(const Connection& visitor) const {
    JoinAnswer answer;
    try {
      answer = answer_(visitor.visit.request(), visitor.visit.body());
    } catch (const Error& error) {
      answer = {error.code(), error.what(), {}};
    } catch (const std::exception& error) {
      answer = {Code::internal, error.what(), {}};
    }
    return framed(to_bytes(answer));
  }

  int listener_;
  int wake_;
  const Token& token_;
  JoinListener::Answer answer_;
  JoinListener::Limits limits_;
  std::vector<Connection> visitors_;  // oldest first
  std::vector<pollfd> polled_;        // the wake-up, the listener, then `visitors_`
  std::array<std::byte, 4096> buffer_{};
  Clock::time_point listens_from_{};
  Refusals refusals_;
};

}  // namespace

JoinListener::JoinListener(const std::string& address, const Token& token, Answer answer,
                           std::function<void()> greet, Limits limits)
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      token_(token) {
  if (!listener_) throw call_failed("socket", std::strerror(errno));
  if (!wake_) throw call_failed("eventfd", std::strerror(errno));
  sockaddr_in at = address_in(address);
  const int on = 1;  // allows the port of a listener that was closed just before
  (void)setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    throw Error(Code::failed_precondition,
                fmt::format("the join listener cannot listen at {}: {}; see --join-address", to_string(at),
                            std::strerror(errno)));
  }
  if (listen(listener_.get(), SOMAXCONN) != 0) throw call_failed("listen", std::strerror(errno));
  socklen_t length = sizeof at;
  if (getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0) {
    throw call_failed("getsockname", std::strerror(errno));
  }
  address_ = to_string(at);
  thread_ = std::jthread([this, answer = std::move(answer), greet = std::move(greet), limits]() mutable {
    greet();
    ConnectionLoop(listener_.get(), wake_.get(), token_, std::move(answer), limits).run();
  });
}

JoinListener::~JoinListener() {
  (void)eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

}  // namespace capstan::cluster
