// command_line.cpp -- options and help texts of `capstan serve`.
#include "launch/serve/command_line.hpp"

#include <fmt/format.h>

#include "base/settings.hpp"
#include "base/settings_value.hpp"
#include "capstan/error.hpp"

namespace capstan::launch::serve {
namespace {

constexpr int kMaxPort = 65535;
/// cpp-httplib serves descriptors below 1024 only, and the process needs some of them.
constexpr int kMaxThreads = 256;
constexpr int kMaxQueue = 512;
constexpr std::int64_t kMaxIds = 100'000'000;

constexpr Setting kMaxBody{.name = "max-body",
                           .group = "",
                           .kind = SettingKind::bytes,
                           .initial = "",
                           .help = "",
                           .minimum = 1024,
                           .maximum = 1 << 30};
constexpr double kLongest = 24.0 * 3600 * 1000;  // milliseconds
constexpr Setting time_setting(std::string_view name) {
  return {.name = name,
          .group = "",
          .kind = SettingKind::duration,
          .initial = "",
          .help = "",
          .minimum = 100,
          .maximum = kLongest};
}

/// Leaves `value` unchanged if the option was not given.
template <class T>
void set(const Setting& setting, const std::string& text, T& value) {
  if (text.empty()) return;
  if (const auto parsed = settings::parse(setting, text)) {
    value = T(std::get<std::int64_t>(*parsed));
    return;
  }
  throw Error(Code::invalid_argument,
              fmt::format("--{}: expected {}, found \"{}\"", setting.name, settings::allowed(setting), text));
}

}  // namespace

Options::Options(CLI::App& app)
    : command_(*app.add_subcommand("serve", "answer lookups and scores over HTTP; needs no cluster")) {
  command_
      .add_option("MODEL", request_.model,
                  "a model file, a checkpoint, or a directory of checkpoints, of which the newest is used")
      ->required();
  command_
      .add_option("--socket", request_.socket, "listen on this Unix socket, which only this user may use")
      ->type_name("PATH");
  command_.add_option("--port", request_.port, "listen on this port of 127.0.0.1; 0: any free port")
      ->check(CLI::Range(0, kMaxPort))
      ->type_name("N");
  command_.add_option("--threads", request_.limits.threads, "connections that are served at the same time")
      ->default_str("16")
      ->check(CLI::Range(1, kMaxThreads))
      ->type_name("N");
  command_
      .add_option("--queue", request_.limits.queue,
                  "connections that may wait for a thread; further ones get the status 503")
      ->default_str("64")
      ->check(CLI::Range(0, kMaxQueue))
      ->type_name("N");
  command_.add_option("--max-body", max_body_, "largest body of a request")
      ->default_str("8MiB")
      ->type_name("SIZE");
  command_
      .add_option("--max-ids", request_.limits.elements, "most ids, lines, items or results of a request")
      ->default_str("65536")
      ->check(CLI::Range(std::int64_t{1}, kMaxIds))
      ->type_name("N");
  command_
      .add_option("--timeout", timeout_, "longest time to receive a request, and again to send its answer")
      ->default_str("10s")
      ->type_name("TIME");
  command_
      .add_option("--idle-timeout", idle_timeout_, "close a connection after this time without a request")
      ->default_str("60s")
      ->type_name("TIME");
  command_.add_option("--reload", reload_, "look for a newer model at this interval, and serve it")
      ->default_str("never")
      ->type_name("TIME");
  command_
      .add_option("--copy-dir", request_.copy_dir,
                  "directory for the copy of a checkpoint, which is removed at once but takes space")
      ->default_str("$TMPDIR or /tmp")
      ->type_name("DIR");
}

Request Options::request() const {
  Request request = request_;
  if (request.socket.empty() == (request.port < 0)) {
    throw Error(Code::invalid_argument, "serve: expected one of --socket PATH and --port N");
  }
  set(kMaxBody, max_body_, request.limits.body_bytes);
  set(time_setting("timeout"), timeout_, request.limits.request_time);
  set(time_setting("idle-timeout"), idle_timeout_, request.limits.idle_time);
  set(time_setting("reload"), reload_, request.reload);
  return request;
}

}  // namespace capstan::launch::serve
