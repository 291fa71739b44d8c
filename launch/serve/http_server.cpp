// http_server.cpp -- cpp-httplib parses and formats HTTP. The streams below add deadlines, and the queue of
// connections is bounded.
#include "launch/serve/http_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

#include "capstan/error.hpp"
#include "io/file.hpp"
#include "launch/serve/api.hpp"
#include "launch/serve/thread_pool.hpp"

namespace capstan::launch::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kBacklog = 512;
constexpr std::chrono::milliseconds kPollTick{50};  // between two looks at a stop or at waiting connections
constexpr std::size_t kReceiveBytes = 16384;
constexpr std::size_t kHeadBytes = 65536;  // of the request line and the headers of a request
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kBytes = "application/octet-stream";

/// Waits for `events`; returns false at the deadline.
bool wait_for(int socket, short events, Clock::time_point deadline) {
  pollfd waiting{.fd = socket, .events = events, .revents = 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

/// A connection as a stream of cpp-httplib. All of a request must arrive within the limit, and all of its
/// answer must be sent within the same time again. Without `override`, since the functions differ between
/// versions of cpp-httplib.
class DeadlineStream : public httplib::Stream {
 public:
  DeadlineStream(int socket, std::chrono::milliseconds limit, std::size_t most_bytes)
      : socket_(socket), limit_(limit), most_bytes_(most_bytes) {}

  /// Starts the time and the bytes of a request.
  void begin_request() {
    left_bytes_ = most_bytes_;
    deadline_ = Clock::now() + limit_;
    sends_ = false;
  }
  /// Returns true if a part of the next request was received.
  bool has_buffered() const noexcept { return at_ < end_; }

  bool is_readable() const { return has_buffered() || wait_for(socket_, POLLIN, deadline_); }
  bool wait_readable() const { return is_readable(); }
  bool is_writable() const { return wait_for(socket_, POLLOUT, deadline_); }
  bool wait_writable() const { return is_writable(); }
  /// Fails after `most_bytes` of a request: the library has no limit of the length of a header.
  ssize_t read(char* out, size_t size) {
    if (left_bytes_ == 0) return -1;
    if (!has_buffered()) {
      if (!is_readable()) return -1;
      const ssize_t got = ::recv(socket_, buffer_, sizeof buffer_, 0);
      if (got <= 0) return got;
      at_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    const std::size_t count = std::min({size, end_ - at_, left_bytes_});
    left_bytes_ -= count;
    std::memcpy(out, buffer_ + at_, count);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* data, size_t size) {
    if (!std::exchange(sends_, true)) deadline_ = Clock::now() + limit_;
    if (!is_writable()) return -1;
    return ::send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const {
    ip = kLoopback;
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const { get_remote_ip_and_port(ip, port); }
  socket_t socket() const { return socket_; }
  time_t duration() const { return 0; }

 private:
  int socket_;
  std::chrono::milliseconds limit_;
  std::size_t most_bytes_;
  std::size_t left_bytes_ = 0;
  Clock::time_point deadline_{};
  bool sends_ = false;
  char buffer_[kReceiveBytes];
  std::size_t at_ = 0, end_ = 0;
};

/// Runs the connections of cpp-httplib on a ThreadPool.
class ConnectionQueue final : public httplib::TaskQueue {
 public:
  ConnectionQueue(ThreadPool& pool, std::function<void(const std::function<void()>&)> reject,
                  std::function<void()> end_idle)
      : pool_(pool), reject_(std::move(reject)), end_idle_(std::move(end_idle)) {}

  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));  // void, or bool since 0.15
  Enqueued enqueue(std::function<void()> task) override {
    if (!pool_.try_add(task)) reject_(task);
    return Enqueued(true);
  }
  /// The library calls it when it has stopped to accept connections, also after an error.
  void shutdown() override {
    end_idle_();
    pool_.shutdown();
  }

 private:
  ThreadPool& pool_;
  std::function<void(const std::function<void()>&)> reject_;
  std::function<void()> end_idle_;
};

std::string media_type(const std::string& header) { return header.substr(0, header.find(';')); }

void send(httplib::Response& response, Answer answer) {
  response.status = answer.status;
  for (const auto& [name, value] : answer.headers) response.set_header(name.c_str(), value);
  response.set_content(answer.body, answer.type.c_str());
}

/// A reason to reject the request before its body is read, with the status; 0 if there is none.
std::pair<int, std::string> refusal_of(const httplib::Request& request) {
  if (request.has_header("Range")) return {400, "found the header Range, expected none"};
  if (request.method == "GET" || request.method == "HEAD") {
    // The library would take an unread body as the next request.
    const std::string length = request.get_header_value("Content-Length");
    if (request.has_header("Transfer-Encoding") || (!length.empty() && length != "0"))
      return {400, fmt::format("found a body of {}, expected none", request.method)};
    return {};
  }
  if (request.method != "POST")
    return {405, fmt::format("found the method {}, expected GET or POST", request.method.substr(0, 60))};
  if (request.has_header("Content-Encoding"))
    return {415, "the body is compressed, expected no Content-Encoding"};
  if (request.has_header("Transfer-Encoding"))
    return {411, "found Transfer-Encoding, expected a body with Content-Length"};
  const std::string length = request.get_header_value("Content-Length");
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (length.empty() || length.size() > 18 || !std::ranges::all_of(length, is_digit) ||
      request.get_header_value_count("Content-Length") != 1) {
    return {length.size() > 18 ? 413 : 411,
            fmt::format("found Content-Length \"{}\", expected the number of bytes", length.substr(0, 60))};
  }
  const std::string type = media_type(request.get_header_value("Content-Type"));
  if (type != kJson && type != kBytes) {
    return {415,
            fmt::format("found Content-Type \"{}\", expected {} or {}", type.substr(0, 60), kJson, kBytes)};
  }
  return {};
}

}  // namespace

class HttpServer::Impl final : public httplib::Server {
 public:
  Impl(const CurrentModel& model, const Limits& limits)
      : model_(model), limits_(limits), pool_(limits.threads, limits.queue) {
    new_task_queue = [this] {
      const auto reject = [](const std::function<void()>& task) {
        rejects_ = true;  // process_and_close_socket() runs on this thread
        task();
        rejects_ = false;
      };
      return new ConnectionQueue(pool_, reject, [this] { ends_idle_ = true; });
    };
    set_keep_alive_max_count(std::numeric_limits<int>::max());
    set_keep_alive_timeout(
        std::max<time_t>(1, std::chrono::ceil<std::chrono::seconds>(limits.idle_time).count()));
    set_tcp_nodelay(true);
    set_socket_options([](socket_t socket) {
      const int on = 1;  // no SO_REUSEPORT, with which two servers could share a port
      (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    set_payload_max_length(static_cast<std::size_t>(limits.body_bytes));
    add_endpoints();
  }

  void bind(const std::string& host, int port, int family, int* bound) {
    set_address_family(family);
    const int found = port == 0 && family != AF_UNIX ? bind_to_any_port(host)
                      : bind_to_port(host, port)     ? port
                                                     : -1;
    if (found < 0) {
      const std::string where = family == AF_UNIX ? "--socket " + host : fmt::format("--port {}", port);
      throw Error(errno == EADDRINUSE ? Code::already_exists : io::code_of_errno(errno),
                  fmt::format("{}: cannot listen: {}", where, std::strerror(errno)));
    }
    (void)::listen(svr_sock_, kBacklog);  // the library's own backlog is 5
    if (bound != nullptr) *bound = found;
  }

  void run() {
    errno = 0;
    const bool failed = !stops_ && !listen_after_bind();
    const int error = errno;  // of accept(), since the library calls nothing else that fails
    pool_.shutdown();
    if (failed && !stops_) {
      throw Error(io::code_of_errno(error),
                  fmt::format("cannot accept connections: {}", std::strerror(error)));
    }
  }
  void request_stop() {
    stops_ = true;
    // The library's stop() does nothing before its loop has begun, so accept() is ended directly.
    const socket_t listening = svr_sock_;
    if (is_running()) {
      stop();
    } else if (listening != INVALID_SOCKET) {
      (void)::shutdown(listening, SHUT_RDWR);
    }
  }

 private:
  void add_endpoints() {
    Get("/v1/health", [](const httplib::Request&, httplib::Response& response) {
      send(response, {.body = R"({"status":"ok"})"});
    });
    Get("/v1/model", [this](const httplib::Request&, httplib::Response& response) {
      const auto served = model_.get();
      send(response, answer_of([&] { return describe_model(*served); }));
    });
    Post("/v1/lookup", [this](const httplib::Request& request, httplib::Response& response) {
      const auto served = model_.get();
      const bool binary_request = media_type(request.get_header_value("Content-Type")) == kBytes;
      const bool binary_answer = media_type(request.get_header_value("Accept")) == kBytes;
      send(response, answer_of([&] {
             return look_up(*served, limits_, request.body, binary_request, binary_answer,
                            request.get_param_value("variable"));
           }));
    });
    Post("/v1/score", [this](const httplib::Request& request, httplib::Response& response) {
      const auto served = model_.get();
      send(response, answer_of([&] { return score(*served, limits_, request.body); }));
    });
    set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      const auto [status, why] = refusal_of(request);
      if (status == 0) return HandlerResponse::Unhandled;
      closes_ = true;  // the body was not read
      response.set_header("Connection", "close");
      send(response, error_answer(status, why));
      return HandlerResponse::Handled;
    });
    set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return;  // by the handlers above
      if (response.status != 404) {
        closes_ = true;  // the rest of the request may be unread
        response.set_header("Connection", "close");
      }
      send(response, error_answer(response.status, library_error(request, response)));
    });
  }

  /// Describes an error that the library detected.
  std::string library_error(const httplib::Request& request, const httplib::Response& response) const {
    switch (response.status) {
      case 404:
        return fmt::format(
            "{} {}: there is no such endpoint, expected GET /v1/health, GET /v1/model, "
            "POST /v1/lookup or POST /v1/score",
            request.method, request.path.substr(0, 100));
      case 413:
        return fmt::format("found a body of {} bytes, expected at most {}",
                           request.get_header_value("Content-Length"), limits_.body_bytes);
      case 414:
        return "the address is too long, expected at most 8192 bytes";
      case 500: {
        const std::string why = response.get_header_value("EXCEPTION_WHAT");  // set by the library
        return fmt::format("{} {}: the server failed to answer: {}", request.method,
                           request.path.substr(0, 100), why.empty() ? "unknown exception" : why);
      }
      default:
        return fmt::format("the request is malformed or incomplete, expected HTTP/1.1 within {} ms",
                           limits_.request_time.count());
    }
  }

  bool process_and_close_socket(socket_t socket) override {
    const bool served = rejects_ ? reject(socket) : serve(socket);
    (void)::shutdown(socket, SHUT_RDWR);
    (void)::close(socket);
    return served;
  }

  /// Answers with the status 503, without a wait.
  bool reject(int socket) const {
    const std::string body =
        error_answer(503,
                     fmt::format("{} connections are served and {} wait, expected fewer; try again later",
                                 limits_.threads, limits_.queue))
            .body;
    const std::string answer = fmt::format(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
        "Retry-After: 1\r\n\r\n{}",
        kJson, body.size(), body);
    char request[kReceiveBytes];  // data that was not received would reset the connection
    (void)::recv(socket, request, sizeof request, MSG_DONTWAIT);
    return ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
  }

  bool serve(int socket) {
    DeadlineStream stream(socket, limits_.request_time,
                          static_cast<std::size_t>(limits_.body_bytes) + kHeadBytes);
    bool answered = false;
    while (wait_for_request(stream, answered)) {
      bool closed = false;
      closes_ = false;
      stream.begin_request();
      try {
        answered = process(*this, stream, closed);
      } catch (const std::exception&) {  // such as std::bad_alloc: ends only this connection
        return false;
      }
      if (!answered || closed || closes_) break;
    }
    return answered;
  }

  /// Waits until a request begins. Returns false if the connection shall be closed: after the idle time, at a
  /// stop, after an error of accept(), and, once it was answered, if other connections wait for a thread.
  bool wait_for_request(const DeadlineStream& stream, bool answered) const {
    const auto end = Clock::now() + limits_.idle_time;
    while (!stops_ && !ends_idle_) {
      const auto now = Clock::now();
      if (stream.has_buffered() || wait_for(stream.socket(), POLLIN, std::min(end, now + kPollTick)))
        return true;
      if (now >= end || (answered && pool_.has_waiting())) return false;
    }
    return false;
  }

  /// Calls process_request(), whose arguments differ between versions of the library.
  template <class Self>
  static bool process(Self& self, httplib::Stream& stream, bool& closed) {
    if constexpr (requires { self.process_request(stream, false, closed, nullptr); }) {
      return self.process_request(stream, false, closed, nullptr);
    } else {
      return self.process_request(stream, kLoopback, 0, kLoopback, 0, false, closed, nullptr);
    }
  }

  inline static thread_local bool rejects_ = false;  // this thread rejects a connection
  inline static thread_local bool closes_ = false;   // the connection of this thread ends after the answer

  const CurrentModel& model_;
  Limits limits_;
  ThreadPool pool_;
  std::atomic<bool> stops_ = false;
  std::atomic<bool> ends_idle_ = false;  // no connection is accepted any more
};

HttpServer::HttpServer(const CurrentModel& model, const Limits& limits)
    : impl_(std::make_unique<Impl>(model, limits)) {}
HttpServer::~HttpServer() = default;

void HttpServer::listen_on_socket(const std::string& path) {
  const mode_t before = ::umask(0177);
  try {
    impl_->bind(path, 1, AF_UNIX, nullptr);
  } catch (...) {
    ::umask(before);
    throw;
  }
  ::umask(before);
}

int HttpServer::listen_on_port(int port) {
  int bound = 0;
  impl_->bind(kLoopback, port, AF_INET, &bound);
  return bound;
}

void HttpServer::run() { impl_->run(); }
void HttpServer::stop() { impl_->request_stop(); }

}  // namespace capstan::launch::serve
