// http_server.hpp -- HTTP on a Unix socket or on 127.0.0.1, by cpp-httplib.
#pragma once

#include <memory>
#include <string>

#include "launch/serve/request.hpp"
#include "launch/serve/served_model.hpp"

namespace capstan::launch::serve {

class HttpServer {
 public:
  /// `model` must outlive the server.
  HttpServer(const CurrentModel& model, const Limits& limits);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  // Throw Error: already_exists if the address is in use; permission_denied, not_found, internal.

  /// Only the user of this process may connect.
  void listen_on_socket(const std::string& path);
  /// Returns the port. `port` 0: any free one.
  int listen_on_port(int port);

  /// Answers requests until stop(). Throws Error if accept() fails, except by EMFILE, EINTR or EAGAIN.
  void run();
  /// Rejects connections, closes idle ones, and lets requests in progress finish. Any thread; run() may not
  /// have begun.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace capstan::launch::serve
