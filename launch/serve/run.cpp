// run.cpp -- signals are blocked in all threads, and the main thread waits for them.
#include "launch/serve/run.hpp"

#include <fmt/format.h>

#include "capstan/error.hpp"
#include "launch/exit_codes.hpp"

#ifdef CAPSTAN_HAVE_HTTPLIB
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <thread>

#include "launch/serve/http_server.hpp"
#include "launch/serve/unix_socket.hpp"
#endif

namespace capstan::launch::serve {

#ifdef CAPSTAN_HAVE_HTTPLIB
namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&set, signal);
  return set;
}

void log(const std::string& line) { fmt::print(stderr, "capstan serve: {}\n", line); }

std::string copy_dir_of(const Request& request) {
  if (!request.copy_dir.empty()) return request.copy_dir;
  const char* const directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

}  // namespace

int run(const Request& request) {
  const sigset_t signals = ending_signals();
  (void)::pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread starts, which inherits the mask
  if (!request.socket.empty()) {                          // fails before the model is opened
    const FileDescriptor lock = lock_directory_of(request.socket);
    remove_stale_socket(request.socket);
  }
  CurrentModel model(request.model, copy_dir_of(request));
  HttpServer server(model, request.limits);
  std::optional<SocketFile> socket_file;
  std::string where;
  if (request.socket.empty()) {
    where = fmt::format("http://127.0.0.1:{}", server.listen_on_port(request.port));
  } else {
    const FileDescriptor lock = lock_directory_of(request.socket);  // of two starts, one listens
    remove_stale_socket(request.socket);
    server.listen_on_socket(request.socket);
    socket_file.emplace(request.socket);
    where = "the socket " + request.socket;
  }
  const auto served = model.get();
  if (!served->scorer) log("lookups only: " + served->why_no_scorer);
  fmt::print("serving step {} of {} on {}\n", served->model->step(), served->source, where);
  std::fflush(stdout);

  std::jthread follower;
  if (request.reload.count() > 0) {
    follower = std::jthread([&](const std::stop_token& stop) { model.follow(request.reload, stop, log); });
  }
  std::exception_ptr failure;
  std::thread answers([&] {
    try {
      server.run();
    } catch (...) {
      failure = std::current_exception();
      (void)::kill(::getpid(), SIGTERM);  // ends the wait below
    }
  });
  int signal = 0;
  while (::sigwait(&signals, &signal) != 0) {
  }
  if (follower.joinable()) follower.request_stop();
  server.stop();
  answers.join();
  if (failure) std::rethrow_exception(failure);
  return static_cast<int>(signal == SIGINT ? Exit::interrupted : Exit::ok);
}

#else

int run(const Request& /*request*/) {
  throw Error(Code::unimplemented,
              "serve: this build has no HTTP server, expected cpp-httplib; install libcpp-httplib-dev and "
              "configure again");
}

#endif

}  // namespace capstan::launch::serve
