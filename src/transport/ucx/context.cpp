// context.cpp -- the UCX configuration and features that all of Capstan uses.
#include "transport/ucx/context.hpp"

#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string_view>
#include <utility>

namespace capstan::transport {

namespace {

/// Writes a message of UCX to standard error: UCX's own handler writes to standard output, where the results
/// of the program are. A file that UCX_LOG_FILE names is left to UCX.
ucs_log_func_rc_t log_to_stderr(const char* file, unsigned line, const char* /*function*/,
                                ucs_log_level_t level, const ucs_log_component_config_t* /*component*/,
                                const char* format, va_list values) {
  // The offset of this field is the same from UCX 1.13 to 1.22, that of most other fields is not.
  if (ucs_global_opts.log_file != nullptr && *ucs_global_opts.log_file != '\0')
    return UCS_LOG_FUNC_RC_CONTINUE;
  char text[1024];
  (void)std::vsnprintf(text, sizeof text, format, values);
  char host[256] = "";
  (void)gethostname(host, sizeof host - 1);
  const char* const slash = std::strrchr(file, '/');
  std::fprintf(stderr, "[%s:%d] %s:%u UCX  %-5s %s\n", host, static_cast<int>(getpid()),
               slash != nullptr ? slash + 1 : file, line, ucs_log_level_names[level], text);
  return UCS_LOG_FUNC_RC_STOP;
}

/// Returns whether the user's list of transports has this one. UCX warns about variables of others.
bool may_open(std::string_view transport) {
  const char* list = std::getenv("CAPSTAN_UCX_TLS");
  if (list == nullptr) list = std::getenv("UCX_TLS");
  if (list == nullptr) return true;
  const bool is_shared_memory = transport == "posix" || transport == "sysv";
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "all" || name == transport) return true;
    if (is_shared_memory && (name == "sm" || name == "shm")) return true;
  }
  return false;
}

/// Sets UCX's log handler, and defaults of its transports in the environment, where the user has not set
/// them. Environment variables take precedence over ucx.conf.
void set_defaults() {
  static const bool once = [] {
    if (may_open("tcp")) {
      // If the link is cut, UCX 1.13 by default closes a silent TCP connection after 16 s, at one end first.
      // With a longer interval, the coordinator declares ranks dead (--heartbeat-timeout and --ps-wait).
      setenv("UCX_TCP_KEEPINTVL", "60s", /*overwrite=*/0);
      // One event per poll. A send from a message handler closes the connection if its peer is dead; another
      // event of the same poll that reports the death would then abort the process (tcp_iface.c,
      // "conn_state").
      setenv("UCX_TCP_MAX_POLL", "1", /*overwrite=*/0);
    }
    // UCX holds one buffer of 8 KiB more than a queue has, see ShortQueues. By default, it allocates 512: 4.2
    // MiB per transport.
    if (may_open("posix")) setenv("UCX_POSIX_RX_BUFS_GROW", "65", /*overwrite=*/0);
    if (may_open("sysv")) setenv("UCX_SYSV_RX_BUFS_GROW", "65", /*overwrite=*/0);
    ucs_log_push_handler(log_to_stderr);
    return true;
  }();
  (void)once;
}

std::mutex& environment() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

ShortQueues::ShortQueues() : lock_(environment()) {
  for (const auto& [transport, variable] :
       {std::pair{"posix", "UCX_POSIX_FIFO_SIZE"}, std::pair{"sysv", "UCX_SYSV_FIFO_SIZE"}}) {
    if (!may_open(transport) || std::getenv(variable) != nullptr) continue;
    setenv(variable, "64", /*overwrite=*/0);
    set_.push_back(variable);
  }
}

ShortQueues::~ShortQueues() {
  for (const char* variable : set_) unsetenv(variable);
}

Handle<ConfigTraits> read_config() {
  set_defaults();
  Handle<ConfigTraits> config;
  check(ucp_config_read("CAPSTAN", nullptr, config.out()), "ucp_config_read");
  return config;
}

Handle<ContextTraits> open_context() {
  const Handle<ConfigTraits> config = read_config();
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
  params.name = "capstan";
  Handle<ContextTraits> context;
  check(ucp_init(&params, config.get(), context.out()), "ucp_init");
  return context;
}

bool knows_gpu_memory(ucp_context_h context) {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  if (ucp_context_query(context, &attributes) != UCS_OK) return false;
  if ((attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) == 0) return false;
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  const char* asked = std::getenv("UCX_PROTO_ENABLE");
  return major > 1 || minor >= 16 || (asked != nullptr && (*asked == 'y' || *asked == '1'));
}

std::string printed(const std::function<void(std::FILE*)>& print) {
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* stream = open_memstream(&text, &length);
  if (stream == nullptr) throw call_failed("open_memstream", "out of memory");
  print(stream);
  std::fclose(stream);
  std::string copy(text, length);
  std::free(text);
  return copy;
}

std::vector<std::string> transports_of(ucp_context_h context) {
  std::vector<std::string> names;
  std::istringstream lines(printed([&](std::FILE* to) { ucp_context_print_info(context, to); }));
  for (std::string line; std::getline(lines, line);) {
    // "#      resource 2  :  md 1  dev 2  flags -- tcp/eth0"
    const std::size_t space = line.find_last_of(' ');
    if (line.find(" resource ") == std::string::npos || space == std::string::npos) continue;
    if (line.find('/', space) != std::string::npos) names.push_back(line.substr(space + 1));
  }
  return names;
}

}  // namespace capstan::transport
