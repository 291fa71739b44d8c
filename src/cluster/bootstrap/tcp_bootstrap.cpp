// tcp_bootstrap.cpp -- the coordinator listens, the other tasks connect repeatedly until they have the table.
#include "cluster/bootstrap/tcp_bootstrap.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "capstan/resolvers.hpp"
#include "capstan/serialize.hpp"
#include "cluster/bootstrap/connect_to_job.hpp"
#include "cluster/bootstrap/join_listener.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "cluster/bootstrap/roll_call.hpp"
#include "cluster/bootstrap/run_directory.hpp"
#include "cluster/roles/role_map.hpp"

namespace capstan::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kTokenVariable = "CAPSTAN_JOB_TOKEN";
/// Pause between two attempts of a waiting task: 1 ms per task of the job, within the two limits.
constexpr std::chrono::milliseconds kAttemptOfEach{1};
constexpr std::chrono::milliseconds kShortestBetweenAttempts{100};
constexpr std::chrono::milliseconds kLongestBetweenAttempts{2000};
/// Poll interval of the coordinator.
constexpr std::chrono::milliseconds kTcpPollPeriod{10};
/// Other tasks wait this much longer than the coordinator, so that it reports the missing tasks first.
constexpr std::chrono::seconds kCoordinatorReportsFirst{5};
/// The coordinator gives up if none of the present tasks fetches the result within this time.
constexpr std::chrono::seconds kFetches{10};

std::vector<StartTask> tasks_in_order(const ClusterSpec& spec) {
  std::vector<StartTask> tasks;
  for (const auto& [job, role] :
       {std::pair("chief", Role::coordinator), std::pair("ps", Role::ps), std::pair("worker", Role::worker),
        std::pair("evaluator", Role::evaluator)}) {
    const auto found = spec.jobs.find(job);
    if (found == spec.jobs.end()) continue;
    for (std::size_t index = 0; index < found->second.size(); ++index) {
      tasks.push_back({role, static_cast<int>(index), found->second[index]});
    }
  }
  return tasks;
}

/// Derives a token that is equal on all tasks of a job.
Token token_of(const std::string& address) {
  Token token;
  for (std::size_t i = 0; i < token.size() / sizeof(std::uint64_t); ++i) {
    const std::uint64_t word = XXH3_64bits_withSeed(address.data(), address.size(), i + 1);
    std::memcpy(token.data() + i * sizeof word, &word, sizeof word);
  }
  return token;
}

bool has_port(const std::string& address) { return address.find(':') != std::string::npos; }

void report(const std::string& text) { std::fprintf(stderr, "capstan: %s\n", text.c_str()); }

/// State of the coordinator during the start. Used by the listener's thread and by the coordinator's thread.
class Reception {
 public:
  Reception(const Rendezvous& rendezvous, std::chrono::milliseconds timeout)
      : rendezvous_(rendezvous),
        timeout_(timeout),
        deadline_(Clock::now() + timeout),
        roll_(names(rendezvous), Clock::now()),
        hellos_(rendezvous.tasks.size()),
        is_done_(rendezvous.tasks.size()) {}

  /// Handles the call of a task. Called on the listener's thread.
  JoinAnswer answer(const StartCall& call) {
    const std::lock_guard lock(mutex_);
    if (build_ && call.build != *build_) {
      refuse(call, "runs a different build than the coordinator: start every task from the same binary");
    }
    const auto rank = static_cast<std::size_t>(call.rank);
    if (call.cluster != rendezvous_.cluster || call.rank <= 0 || rank >= hellos_.size()) {
      refuse(call,
             fmt::format(
                 "has another cluster description than the coordinator, which has {} tasks: give every task "
                 "the same \"cluster\" in TF_CONFIG",
                 hellos_.size()));
    }
    if (!build_) {
      if (result_) return *result_;  // the deadline has passed
      roll_.set_state(rank, rendezvous_.tasks[rank].name(), "it waits for the coordinator's program");
      return {Code::ok, "waiting for the coordinator's program", {}};
    }
    const auto hello = from_bytes<Hello>(call.hello);
    if (result_ && result_->code == Code::ok && !is_same_process(hello, hellos_[rank])) {
      refuse(call,
             "is another process than the one that joined (the task was started twice, or restarted): start "
             "the job again");
    }
    take(rank, hello);
    if (!result_) return {Code::ok, "waiting for " + roll_.missing(), {}};
    progress_ = Clock::now();
    if (call.has_table != 0 || result_->code != Code::ok) is_done_[rank] = true;
    return call.has_table != 0 ? JoinAnswer{} : *result_;
  }

  void take_own(const Hello& hello) {
    const std::lock_guard lock(mutex_);
    build_ = hello.build;
    take(0, hello);
    is_done_[0] = true;
  }

  /// Returns the coordinator's table once all other tasks have theirs. Throws Error. `listens_at` is for
  /// messages.
  std::optional<Table> poll(const std::string& listens_at) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (const auto text = roll_.due(now))
      report(fmt::format("{}; the coordinator listens at {}", *text, listens_at));
    if (!result_ && now >= deadline_) {
      conclude(
          {Code::deadline_exceeded,
           fmt::format("waited {} ms at the start (--start-timeout) for {}; the coordinator listened at {}",
                       timeout_.count(), roll_.missing(), listens_at),
           {}});
    }
    if (!result_) return std::nullopt;
    std::size_t waits_for = 0;  // a task that has joined but not fetched the result; 0: none
    for (std::size_t rank = 1; rank < is_done_.size() && waits_for == 0; ++rank) {
      if (roll_.has_joined(rank) && is_done_[rank] == 0) waits_for = rank;
    }
    if (waits_for != 0 && now < progress_ + kFetches) return std::nullopt;
    if (result_->code != Code::ok) throw Error(result_->code, result_->message);
    if (waits_for != 0) {
      throw Error(Code::unavailable,
                  rendezvous_.tasks[waits_for].name() + " joined, but ended before the job started");
    }
    return from_bytes<Table>(result_->bytes);
  }

 private:
  static std::vector<std::string> names(const Rendezvous& rendezvous) {
    std::vector<std::string> out;
    for (const StartTask& task : rendezvous.tasks) out.push_back(task.name());
    return out;
  }

  static bool is_same_process(const Hello& a, const Hello& b) {
    return a.pid == b.pid && a.host == b.host && a.control_address == b.control_address;
  }

  /// Also prints the reason on the coordinator, which keeps waiting for that task.
  [[noreturn]] void refuse(const StartCall& call, const std::string& why) {
    if (refused_.insert(call.name).second) report(call.name + " " + why);
    throw Error(Code::failed_precondition, call.name + " " + why);
  }

  /// The last call of a task counts: it may have been restarted.
  void take(std::size_t rank, const Hello& hello) {
    if (result_) return;
    const Role role = rendezvous_.tasks[rank].role;
    if (!hello.own_role.empty() && role_named(hello.own_role) != role) {
      conclude({Code::invalid_argument,
                fmt::format("{} has --role {}: omit --role, because TF_CONFIG sets the role",
                            rendezvous_.tasks[rank].name(), hello.own_role),
                {}});
    }
    hellos_[rank] = hello;
    hellos_[rank].own_role = to_string(role);
    roll_.joined(rank);
    if (result_ || !roll_.complete()) return;
    try {
      conclude({Code::ok, {}, to_bytes(make_table(hellos_))});
    } catch (const Error& error) {
      conclude({error.code(), error.what(), {}});
    } catch (const std::exception& error) {
      conclude({Code::internal, error.what(), {}});
    }
  }

  void conclude(JoinAnswer result) {
    result_ = std::move(result);
    progress_ = Clock::now();
  }

  const Rendezvous& rendezvous_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::optional<std::uint64_t> build_;  // of the coordinator's program, set once it has sent its hello
  std::mutex mutex_;
  RollCall roll_;
  std::vector<Hello> hellos_;  // by rank
  std::vector<char> is_done_;  // the task has the result
  std::set<std::string> refused_;
  std::optional<JoinAnswer> result_;  // with the table for all tasks, or an error
  Clock::time_point progress_{};      // last time that a task asked for `result_`
};

/// Retries until the deadline, because the name of the listener's host may not be resolvable yet.
std::unique_ptr<JoinListener> open_listener(const Rendezvous& rendezvous, const JoinListener::Answer& answer,
                                            Clock::time_point deadline) {
  while (true) {
    try {
      return std::make_unique<JoinListener>(rendezvous.listen_at, rendezvous.token, answer);
    } catch (const Error& error) {
      if (error.code() != Code::unavailable || Clock::now() >= deadline) throw;
    }
    std::this_thread::sleep_for(kShortestBetweenAttempts);
  }
}

Table receive_all(const Rendezvous& rendezvous, const HelloSource& hello, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  Reception reception(rendezvous, timeout);
  const auto answer = [&reception](JoinRequest request, std::span<const std::byte> body) -> JoinAnswer {
    if (request == JoinRequest::start) return reception.answer(from_bytes<StartCall>(body));
    throw Error(Code::unavailable, "the job has not begun");
  };
  const auto listener = open_listener(rendezvous, answer, deadline);
  bool has_own = false;
  while (true) {
    if (!has_own) {
      if (const auto own = hello()) {
        reception.take_own(*own);
        has_own = true;
      }
    }
    if (auto table = reception.poll(listener->address())) return *table;
    std::this_thread::sleep_for(kTcpPollPeriod);
  }
}

Hello await_hello(const HelloSource& hello, Clock::time_point deadline) {
  while (true) {
    if (const auto own = hello()) return *own;
    if (Clock::now() >= deadline) {
      throw Error(Code::deadline_exceeded, "this task's program has not opened its network in time");
    }
    std::this_thread::sleep_for(kTcpPollPeriod);
  }
}

/// A task's connection to the coordinator.
class TaskConnection {
 public:
  TaskConnection(const Rendezvous& rendezvous, const HelloSource& hello, std::chrono::milliseconds timeout)
      : rendezvous_(rendezvous),
        timeout_(timeout),
        deadline_(Clock::now() + timeout + kCoordinatorReportsFirst),
        pause_(std::clamp<std::chrono::milliseconds>(kAttemptOfEach * rendezvous.tasks.size(),
                                                     kShortestBetweenAttempts, kLongestBetweenAttempts)) {
    const Hello own = await_hello(hello, deadline_);
    call_ = {own.build, rendezvous.cluster, rendezvous.rank, 0, rendezvous.self().name(), to_bytes(own)};
  }

  Table run() {
    auto next_report = Clock::now() + RollCall::kPeriod;
    while (true) {
      const auto answer = attempt();
      if (answer && !answer->bytes.empty()) return take(answer->bytes);
      const auto now = Clock::now();
      if (now >= deadline_) {
        throw Error(
            Code::deadline_exceeded,
            fmt::format("{} waited {} ms at the start (--start-timeout) for the coordinator at {}: {}",
                        call_.name, timeout_.count(), listener_address(), why_));
      }
      if (answer) next_report = now + RollCall::kPeriod;  // the coordinator reports missing tasks
      if (now >= next_report) {
        report(
            fmt::format("{} is waiting for the coordinator at {}: {}", call_.name, listener_address(), why_));
        next_report = now + RollCall::kPeriod;
      }
      std::this_thread::sleep_for(pause_);
    }
  }

 private:
  const std::string& listener_address() const { return rendezvous_.tasks[0].address; }

  /// Returns nothing if there is no answer. Throws the error that the coordinator answers.
  std::optional<JoinAnswer> attempt() {
    std::optional<JoinAnswer> answer;
    try {
      answer = ask_join_listener(listener_address(), rendezvous_.token, JoinRequest::start, to_bytes(call_),
                                 deadline_);
    } catch (const Error& error) {
      if (error.code() != Code::unavailable && error.code() != Code::deadline_exceeded) throw;
      // An error that the deadline caused is less precise than the previous error.
      if (why_.empty() || Clock::now() < deadline_) why_ = error.what();
      return std::nullopt;
    }
    if (answer->code != Code::ok) throw Error(answer->code, answer->message);
    why_ = answer->message;
    return answer;
  }

  Table take(std::span<const std::byte> bytes) {
    auto table = from_bytes<Table>(bytes);
    if (table.members.size() != rendezvous_.tasks.size()) {
      throw Error(Code::data_loss,
                  "the process that answers at " + listener_address() + " is not this job's coordinator");
    }
    table.rank = rendezvous_.rank;
    // The coordinator closes its listener when all tasks have confirmed, so a refused connection is no error.
    call_.has_table = 1;
    (void)attempt();
    return table;
  }

  const Rendezvous& rendezvous_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::chrono::milliseconds pause_;
  StartCall call_;
  std::string why_;  // reason of the wait
};

}  // namespace

std::string StartTask::name() const { return fmt::format("{} {} at {}", to_string(role), index, address); }

Rendezvous rendezvous_of(const ClusterResolver& resolver, const Settings& settings) {
  const ClusterSpec spec = resolver.cluster_spec();
  validate_cluster(resolver);
  if (!resolver.task_type()) {
    throw Error(Code::invalid_argument,
                "the cluster description does not name this process's task: add "
                "{\"task\": {\"type\": ..., \"index\": ...}} to TF_CONFIG");
  }
  if (spec.task_count("chief") == 0) {
    throw Error(Code::invalid_argument,
                "the cluster has no \"chief\": give the coordinator's address, to which all tasks connect");
  }
  Rendezvous rendezvous;
  rendezvous.tasks = tasks_in_order(spec);
  rendezvous.rank = -1;
  std::string text;
  for (std::size_t rank = 0; rank < rendezvous.tasks.size(); ++rank) {
    const StartTask& task = rendezvous.tasks[rank];
    const std::string job = task.role == Role::coordinator ? "chief" : std::string(to_string(task.role));
    text += job + "=" + task.address + " ";
    if (job == resolver.task_type() && task.index == resolver.task_id().value_or(0))
      rendezvous.rank = static_cast<int>(rank);
  }
  rendezvous.cluster = XXH3_64bits(text.data(), text.size());
  if (rendezvous.rank < 0) {
    throw Error(Code::invalid_argument, "the cluster has no \"evaluator\": give its address to every task");
  }
  const std::string& chief = rendezvous.tasks[0].address;
  if (!has_port(chief)) {
    throw Error(
        Code::invalid_argument,
        fmt::format("the chief's address is \"{}\": expected HOST:PORT, to which all tasks connect", chief));
  }
  const std::string& address = settings.text("join-address");
  rendezvous.listen_at = address.empty()     ? chief
                         : has_port(address) ? address
                                             : address + chief.substr(chief.rfind(':'));
  const char* token = std::getenv(kTokenVariable);
  rendezvous.token = token != nullptr ? token_in(kTokenVariable, token) : token_of(chief);
  return rendezvous;
}

Table join_rendezvous(const Rendezvous& rendezvous, const HelloSource& hello,
                      std::chrono::milliseconds timeout) {
  return rendezvous.rank == 0 ? receive_all(rendezvous, hello, timeout)
                              : TaskConnection(rendezvous, hello, timeout).run();
}

}  // namespace capstan::cluster
