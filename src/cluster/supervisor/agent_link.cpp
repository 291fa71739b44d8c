// agent_link.cpp -- the exchange over pipes, and file descriptors that are inherited across exec.
#include "cluster/supervisor/agent_link.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "capstan/version.hpp"
#include "cluster/supervisor/agent_pipe.hpp"
#include "cluster/supervisor/heartbeat.hpp"

namespace capstan::cluster {
namespace {

using Clock = std::chrono::steady_clock;

/// The child waits this much longer than the exchange, so that the exchange reports the missing ranks first.
constexpr std::chrono::seconds kExchangeReportsFirst{10};
/// Time limit for reading a table that is already complete.
constexpr std::chrono::seconds kTableIsRead{10};
constexpr const char* kTableName = "capstan-table";

/// The variable's numbers, after the version: "0.1.0:4711:0:8:9:10:11:-1".
struct Fields {
  int agent = 0;  // its pid
  int restart_number = 0;
  int heartbeat = -1;  // file descriptors; -1 for none
  int memory = -1;
  int from_agent = -1;
  int to_agent = -1;
  int table = -1;

  std::array<int*, 7> all() {
    return {&agent, &restart_number, &heartbeat, &memory, &from_agent, &to_agent, &table};
  }
};

std::string text_of(Fields fields) {
  std::string text = CAPSTAN_VERSION_STRING;
  for (const int* field : fields.all()) text += fmt::format(":{}", *field);
  return text;
}

Error unusable(std::string_view value, const std::string& found, std::string_view expected) {
  return Error(Code::failed_precondition,
               fmt::format("{}={}: {}, expected {}; unset the variable: only capstan-agent sets it, for the "
                           "program that it starts",
                           AgentLink::kVariable, value, found, expected));
}

std::optional<int> next_number(std::string_view& rest) {
  int number = 0;
  if (!rest.starts_with(':')) return std::nullopt;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), number);
  if (error != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

/// Throws Error(failed_precondition).
Fields parse(std::string_view value) {
  const std::size_t version = std::min(value.find(':'), value.size());
  if (value.substr(0, version) != CAPSTAN_VERSION_STRING) {
    throw unusable(value, fmt::format("version {}", value.substr(0, version)),
                   "version " CAPSTAN_VERSION_STRING ", that of this program's Capstan");
  }
  Fields fields;
  std::string_view rest = value.substr(version);
  for (int* const field : fields.all()) {
    const auto number = next_number(rest);
    if (!number) throw unusable(value, "a malformed value", "a version and 7 numbers");
    *field = *number;
  }
  if (!rest.empty()) throw unusable(value, "a malformed value", "a version and 7 numbers");
  if (fields.agent != getppid()) {
    throw unusable(value, fmt::format("agent {}", fields.agent),
                   fmt::format("this process's parent, {}", getppid()));
  }
  return fields;
}

/// "pipe:[4711]" or "/memfd:capstan-table (deleted)"; "nothing" for a descriptor that is not open.
std::string file_of(int fd) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : "nothing";
}

void require_file(std::string_view value, int fd, const std::string& prefix) {
  const std::string found = file_of(fd);
  if (!found.starts_with(prefix)) {
    throw unusable(value, fmt::format("{} as file descriptor {}", found, fd), prefix);
  }
}

/// Throws Error(failed_precondition) unless all descriptors are open and of the right kind.
void require_files(std::string_view value, const Fields& fields) {
  require_file(value, fields.heartbeat, fmt::format("/memfd:{} ", Heartbeat::kFileName));
  if (fields.memory >= 0) {
    require_file(value, fields.memory, fmt::format("/memfd:{} ", transport::PersistentMemory::kFileName));
  }
  if (fields.restart_number > 0) {
    require_file(value, fields.table, fmt::format("/memfd:{} ", kTableName));
  } else {
    require_file(value, fields.from_agent, "pipe:");
    require_file(value, fields.to_agent, "pipe:");
  }
}

void set_close_on_exec(int fd, bool close) {
  if (fcntl(fd, F_SETFD, close ? FD_CLOEXEC : 0) != 0) throw call_failed("fcntl", std::strerror(errno));
}

FileDescriptor take(int fd) {
  FileDescriptor owned(fd);
  set_close_on_exec(fd, true);
  return owned;
}

/// An unnamed file with the table, to be read from its start.
FileDescriptor file_with(const Table& table) {
  FileDescriptor file(memfd_create(kTableName, MFD_CLOEXEC));
  if (!file) throw call_failed("memfd_create", std::strerror(errno));
  send_value(file.get(), table);
  if (lseek(file.get(), 0, SEEK_SET) != 0) throw call_failed("lseek", std::strerror(errno));
  return file;
}

}  // namespace

void AgentLink::pass_to_program() {
  if (table_) table_file_ = file_with(*table_);
  const Fields fields{.agent = getppid(),
                      .restart_number = restart_number_,
                      .heartbeat = Heartbeat::descriptor(),
                      .memory = memory_ ? memory_->descriptor() : -1,
                      .from_agent = from_agent_.get(),
                      .to_agent = to_agent_.get(),
                      .table = table_file_.get()};
  for (const int fd : {fields.heartbeat, fields.memory, fields.from_agent, fields.to_agent, fields.table}) {
    if (fd >= 0) set_close_on_exec(fd, false);
  }
  if (setenv(kVariable, text_of(fields).c_str(), 1) != 0) throw call_failed("setenv", std::strerror(errno));
}

bool AgentLink::is_passed() noexcept { return std::getenv(kVariable) != nullptr; }

std::optional<AgentLink> AgentLink::adopt() {
  const char* const variable = std::getenv(kVariable);
  if (variable == nullptr) return std::nullopt;
  const std::string value = variable;
  const Fields fields = parse(value);
  require_files(value, fields);
  unsetenv(kVariable);

  Heartbeat::adopt(take(fields.heartbeat));
  Memory memory;
  if (fields.memory >= 0) memory = transport::PersistentMemory::adopt(take(fields.memory), fields.agent);
  if (fields.restart_number > 0) {
    const FileDescriptor table = take(fields.table);
    return AgentLink(receive_value<Table>(table.get(), Clock::now() + kTableIsRead, "the agent"),
                     std::move(memory), fields.restart_number);
  }
  return AgentLink(take(fields.from_agent), take(fields.to_agent), std::move(memory));
}

Table AgentLink::exchange(const Hello& hello, std::chrono::milliseconds timeout) {
  if (table_) return std::move(*table_);
  void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
  try {
    send_value(to_agent_.get(), hello);
  } catch (const Error&) {
    // The exchange has ended already, and its answer contains the reason.
  }
  signal(SIGPIPE, before);
  const auto deadline = Clock::now() + timeout + kExchangeReportsFirst;
  const auto answer = receive_value<StartAnswer>(from_agent_.get(), deadline, "the other ranks");
  to_agent_.reset();
  from_agent_.reset();
  if (answer.code != Code::ok) throw Error(answer.code, answer.message);
  return answer.table;
}

}  // namespace capstan::cluster
