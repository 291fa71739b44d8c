// tcp_bootstrap.cpp -- the coordinator listens, the others connect until they have the table.
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
/// Interval between two attempts of a waiting task.
constexpr std::chrono::milliseconds kAttemptOfEach{1};
constexpr std::chrono::milliseconds kShortestBetweenAttempts{100};
constexpr std::chrono::milliseconds kLongestBetweenAttempts{2000};
/// Poll interval of the coordinator.
constexpr std::chrono::milliseconds kTcpPollPeriod{10};
/// The others wait longer than the coordinator, which names the missing tasks.
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

/// Equal on all tasks of a job.
Token token_of(const std::string& address) {
  Token token;
  for (std::size_t i = 0; i < token.size() / sizeof(std::uint64_t); ++i) {
    const std::uint64_t word = XXH3_64bits_withSeed(address.data(), address.size(), i + 1);
    std::memcpy(token.data() + i * sizeof word, &word, sizeof word);
  }
  return token;
}

bool has_port(const std::string& address) { return address.find(':') != std::string::npos; }

void say(const std::string& text) { std::fprintf(stderr, "capstan: %s\n", text.c_str()); }

/// State of the coordinator. Used by the listener's thread and its own.
class Reception {
 public:
  Reception(const Meeting& meeting, std::chrono::milliseconds timeout)
      : meeting_(meeting),
        timeout_(timeout),
        deadline_(Clock::now() + timeout),
        roll_(names(meeting), Clock::now()),
        hellos_(meeting.tasks.size()),
        is_done_(meeting.tasks.size()) {}

  /// Handles the call of a task. Called on the listener's thread.
  JoinAnswer answer(const StartCall& call) {
    const std::lock_guard lock(mutex_);
    if (build_ && call.build != *build_) {
      refuse(call, "runs another build than the coordinator: start every task from the same binary");
    }
    const auto rank = static_cast<std::size_t>(call.rank);
    if (call.cluster != meeting_.cluster || call.rank <= 0 || rank >= hellos_.size()) {
      refuse(call,
             fmt::format(
                 "was told another cluster than the coordinator, which has {} tasks: give every task the "
                 "same \"cluster\" in TF_CONFIG",
                 hellos_.size()));
    }
    if (!build_) {
      if (result_) return *result_;  // the deadline has passed
      roll_.set_state(rank, meeting_.tasks[rank].name(), "it waits for the coordinator's program");
      return {Code::ok, "waiting for the coordinator's program", {}};
    }
    const auto hello = from_bytes<Hello>(call.hello);
    if (result_ && result_->code == Code::ok && !is_same_process(hello, hellos_[rank])) {
      refuse(call,
             "is another process than the one that came to the start (started twice, or again): start the "
             "job again");
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

  /// Returns the coordinator's table when all others have theirs. Throws Error. `listens_at` is for messages.
  std::optional<Table> look(const std::string& listens_at) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (const auto text = roll_.due(now))
      say(fmt::format("{}; the coordinator listens at {}", *text, listens_at));
    if (!result_ && now >= deadline_) {
      conclude(
          {Code::deadline_exceeded,
           fmt::format("waited {} ms at the start (--start-timeout) for {}; the coordinator listened at {}",
                       timeout_.count(), roll_.missing(), listens_at),
           {}});
    }
    if (!result_) return std::nullopt;
    std::size_t waits_for = 0;  // task that all wait for; 0: none
    for (std::size_t rank = 1; rank < is_done_.size() && waits_for == 0; ++rank) {
      if (roll_.has_joined(rank) && is_done_[rank] == 0) waits_for = rank;
    }
    if (waits_for != 0 && now < progress_ + kFetches) return std::nullopt;
    if (result_->code != Code::ok) throw Error(result_->code, result_->message);
    if (waits_for != 0) {
      throw Error(Code::unavailable, meeting_.tasks[waits_for].name() +
                                         " had come to the start, and has gone before the job began");
    }
    return from_bytes<Table>(result_->bytes);
  }

 private:
  static std::vector<std::string> names(const Meeting& meeting) {
    std::vector<std::string> out;
    for (const StartTask& task : meeting.tasks) out.push_back(task.name());
    return out;
  }

  static bool is_same_process(const Hello& a, const Hello& b) {
    return a.pid == b.pid && a.host == b.host && a.control_address == b.control_address;
  }

  /// The coordinator also reports it, since it keeps waiting for that task.
  [[noreturn]] void refuse(const StartCall& call, const std::string& why) {
    if (refused_.insert(call.name).second) say(call.name + " " + why);
    throw Error(Code::failed_precondition, call.name + " " + why);
  }

  /// The last call of a task counts: it may have been restarted.
  void take(std::size_t rank, const Hello& hello) {
    if (result_) return;
    const Role role = meeting_.tasks[rank].role;
    if (!hello.own_role.empty() && role_named(hello.own_role) != role) {
      conclude({Code::invalid_argument,
                fmt::format("{} was given --role {}: leave --role out beside TF_CONFIG",
                            meeting_.tasks[rank].name(), hello.own_role),
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

  const Meeting& meeting_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::optional<std::uint64_t> build_;  // of the coordinator's program, once that has sent its hello
  std::mutex mutex_;
  RollCall roll_;
  std::vector<Hello> hellos_;  // by rank
  std::vector<char> is_done_;  // the task has the result
  std::set<std::string> refused_;
  std::optional<JoinAnswer> result_;  // with the table for all, if the ranks match
  Clock::time_point progress_{};      // last time that a task asked for it
};

/// The name of its host may not be resolvable yet.
std::unique_ptr<JoinListener> open_listener(const Meeting& meeting, const JoinListener::Answer& answer,
                                            Clock::time_point deadline) {
  while (true) {
    try {
      return std::make_unique<JoinListener>(meeting.listen_at, meeting.token, answer);
    } catch (const Error& error) {
      if (error.code() != Code::unavailable || Clock::now() >= deadline) throw;
    }
    std::this_thread::sleep_for(kShortestBetweenAttempts);
  }
}

Table receive_all(const Meeting& meeting, const HelloSource& hello, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  Reception reception(meeting, timeout);
  const auto answer = [&reception](JoinRequest request, std::span<const std::byte> body) -> JoinAnswer {
    if (request == JoinRequest::start) return reception.answer(from_bytes<StartCall>(body));
    throw Error(Code::unavailable, "the job has not begun");
  };
  const auto listener = open_listener(meeting, answer, deadline);
  bool has_own = false;
  while (true) {
    if (!has_own) {
      if (const auto own = hello()) {
        reception.take_own(*own);
        has_own = true;
      }
    }
    if (auto table = reception.look(listener->address())) return *table;
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
  TaskConnection(const Meeting& meeting, const HelloSource& hello, std::chrono::milliseconds timeout)
      : meeting_(meeting),
        timeout_(timeout),
        deadline_(Clock::now() + timeout + kCoordinatorReportsFirst),
        pause_(std::clamp<std::chrono::milliseconds>(kAttemptOfEach * meeting.tasks.size(),
                                                     kShortestBetweenAttempts, kLongestBetweenAttempts)) {
    const Hello own = await_hello(hello, deadline_);
    call_ = {own.build, meeting.cluster, meeting.rank, 0, meeting.self().name(), to_bytes(own)};
  }

  Table run() {
    auto speaks = Clock::now() + RollCall::kPeriod;
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
      if (answer) speaks = now + RollCall::kPeriod;  // the coordinator reports missing tasks
      if (now >= speaks) {
        say(fmt::format("{} is waiting for the coordinator at {}: {}", call_.name, listener_address(), why_));
        speaks = now + RollCall::kPeriod;
      }
      std::this_thread::sleep_for(pause_);
    }
  }

 private:
  const std::string& listener_address() const { return meeting_.tasks[0].address; }

  /// Returns nothing if there is no answer. Throws what the coordinator answers.
  std::optional<JoinAnswer> attempt() {
    std::optional<JoinAnswer> answer;
    try {
      answer = ask_join_listener(listener_address(), meeting_.token, JoinRequest::start, to_bytes(call_),
                                 deadline_);
    } catch (const Error& error) {
      if (error.code() != Code::unavailable && error.code() != Code::deadline_exceeded) throw;
      // An error caused by the deadline says less than the one before it.
      if (why_.empty() || Clock::now() < deadline_) why_ = error.what();
      return std::nullopt;
    }
    if (answer->code != Code::ok) throw Error(answer->code, answer->message);
    why_ = answer->message;
    return answer;
  }

  Table take(std::span<const std::byte> bytes) {
    auto table = from_bytes<Table>(bytes);
    if (table.members.size() != meeting_.tasks.size()) {
      throw Error(Code::data_loss,
                  "what answers at " + listener_address() + " is not this job's coordinator");
    }
    table.rank = meeting_.rank;
    // The coordinator closes its listener when all tasks have confirmed, so a refused connection is no error.
    call_.has_table = 1;
    (void)attempt();
    return table;
  }

  const Meeting& meeting_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::chrono::milliseconds pause_;
  StartCall call_;
  std::string why_;  // reason of the wait
};

}  // namespace

std::string StartTask::name() const { return fmt::format("{} {} at {}", to_string(role), index, address); }

Meeting meeting_of(const ClusterResolver& resolver, const Settings& settings) {
  const ClusterSpec spec = resolver.cluster_spec();
  validate_cluster(resolver);
  if (!resolver.task_type()) {
    throw Error(Code::invalid_argument,
                "the cluster does not say which of its tasks this process is: TF_CONFIG needs "
                "{\"task\": {\"type\": ..., \"index\": ...}}");
  }
  if (spec.task_count("chief") == 0) {
    throw Error(
        Code::invalid_argument,
        "the cluster has no \"chief\": it is where the tasks meet, so give the coordinator's address");
  }
  Meeting meeting;
  meeting.tasks = tasks_in_order(spec);
  meeting.rank = -1;
  std::string text;
  for (std::size_t rank = 0; rank < meeting.tasks.size(); ++rank) {
    const StartTask& task = meeting.tasks[rank];
    const std::string job = task.role == Role::coordinator ? "chief" : std::string(to_string(task.role));
    text += job + "=" + task.address + " ";
    if (job == resolver.task_type() && task.index == resolver.task_id().value_or(0))
      meeting.rank = static_cast<int>(rank);
  }
  meeting.cluster = XXH3_64bits(text.data(), text.size());
  if (meeting.rank < 0) {
    throw Error(Code::invalid_argument, "the cluster has no \"evaluator\": give its address to every task");
  }
  const std::string& chief = meeting.tasks[0].address;
  if (!has_port(chief)) {
    throw Error(Code::invalid_argument,
                fmt::format("the chief's address is \"{}\": expected HOST:PORT, where the tasks "
                            "meet",
                            chief));
  }
  const std::string& address = settings.text("join-address");
  meeting.listen_at = address.empty()     ? chief
                      : has_port(address) ? address
                                          : address + chief.substr(chief.rfind(':'));
  const char* token = std::getenv(kTokenVariable);
  meeting.token = token != nullptr ? token_in(kTokenVariable, token) : token_of(chief);
  return meeting;
}

Table meet(const Meeting& meeting, const HelloSource& hello, std::chrono::milliseconds timeout) {
  return meeting.rank == 0 ? receive_all(meeting, hello, timeout)
                           : TaskConnection(meeting, hello, timeout).run();
}

}  // namespace capstan::cluster
