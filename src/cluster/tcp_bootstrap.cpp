// tcp_bootstrap.cpp -- the coordinator holds a door open, the others knock until they get the table.
#include "cluster/tcp_bootstrap.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/settings.hpp"
#include "capstan/cluster_resolver.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/door_knock.hpp"
#include "cluster/late_door.hpp"
#include "cluster/role_map.hpp"
#include "cluster/roll_call.hpp"
#include "cluster/run_directory.hpp"

namespace capstan::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kTokenVariable = "CAPSTAN_JOB_TOKEN";
/// Between two knocks of a task that waits, and between two looks of the coordinator.
constexpr std::chrono::milliseconds kBetweenKnocks{100};
constexpr std::chrono::milliseconds kBetweenLooks{10};
constexpr std::chrono::seconds kOneKnock{5};
/// The others give up after the coordinator, which says who is missing.
constexpr std::chrono::seconds kCoordinatorSpeaksFirst{5};
/// A task that has come knocks again sooner.
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

/// Two different clusters have different tokens, and the tasks of one the same.
Token token_of(const std::string& cluster) {
  Token token;
  for (std::size_t i = 0; i < token.size() / sizeof(std::uint64_t); ++i) {
    const std::uint64_t word = XXH3_64bits_withSeed(cluster.data(), cluster.size(), i + 1);
    std::memcpy(token.data() + i * sizeof word, &word, sizeof word);
  }
  return token;
}

void say(const std::string& text) { std::fprintf(stderr, "capstan: %s\n", text.c_str()); }

/// What the coordinator knows. Used by the door's thread and by its own.
class Reception {
 public:
  Reception(const Meeting& meeting, std::chrono::milliseconds timeout)
      : meeting_(meeting),
        timeout_(timeout),
        deadline_(Clock::now() + timeout),
        roll_(names(meeting), Clock::now()),
        hellos_(meeting.tasks.size()),
        has_fetched_(meeting.tasks.size()) {}

  /// Of a task; on the door's thread.
  DoorAnswer answer(const StartCall& call) {
    const std::lock_guard lock(mutex_);
    const auto rank = static_cast<std::size_t>(call.rank);
    if (call.cluster != meeting_.cluster || call.rank <= 0 || rank >= hellos_.size()) {
      throw Error(
          Code::failed_precondition,
          fmt::format("a task on {} was told another cluster than the coordinator: give every task the same; "
                      "there it is {}, here {}",
                      call.hello.host, call.cluster, meeting_.cluster));
    }
    take(rank, call.hello);
    if (!result_) return {Code::ok, "waiting for " + roll_.missing(), {}};
    has_fetched_[rank] = true;
    DoorAnswer out = *result_;
    if (out.code == Code::ok) {
      Table table = table_;
      table.rank = call.rank;
      out.bytes = to_bytes(table);
    }
    return out;
  }

  void take_own(const Hello& hello) {
    const std::lock_guard lock(mutex_);
    take(0, hello);
    has_fetched_[0] = true;
  }

  /// The coordinator's table, when all others have theirs. Throws Error.
  std::optional<Table> look() {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (const auto text = roll_.due(now)) say(*text);
    if (!result_ && now >= deadline_) {
      conclude({Code::deadline_exceeded,
                fmt::format("waited {} ms at the start (--start-timeout) for {}", timeout_.count(),
                            roll_.missing()),
                {}});
    }
    if (!result_) return std::nullopt;
    const bool all =
        std::all_of(has_fetched_.begin(), has_fetched_.end(), [](char fetched) { return fetched != 0; });
    // Those who are missing fetch nothing; the rest has had time.
    if (!all && now < concluded_ + (result_->code == Code::ok ? kFetches : std::chrono::seconds(1)))
      return std::nullopt;
    if (result_->code != Code::ok) throw Error(result_->code, result_->message);
    if (!all) {
      const auto first = std::find(has_fetched_.begin(), has_fetched_.end(), 0) - has_fetched_.begin();
      throw Error(Code::unavailable, meeting_.tasks[static_cast<std::size_t>(first)].name() +
                                         " had come to the start, and has gone before the job began");
    }
    return table_;
  }

 private:
  static std::vector<std::string> names(const Meeting& meeting) {
    std::vector<std::string> out;
    for (const StartTask& task : meeting.tasks) out.push_back(task.name());
    return out;
  }

  /// The last word of a task counts: it may have been started again.
  void take(std::size_t rank, const Hello& hello) {
    if (result_) return;
    hellos_[rank] = hello;
    hellos_[rank].own_role = to_string(meeting_.tasks[rank].role);
    roll_.arrive(rank);
    if (!roll_.complete()) return;
    try {
      table_.members = make_members(hellos_);
      table_.restarts = hellos_[0].restarts;
      table_.late = hellos_[0].late;
      table_.coordinator_wait = hellos_[0].coordinator_wait;
      conclude({});
    } catch (const Error& error) {
      conclude({error.code(), error.what(), {}});
    }
  }

  void conclude(DoorAnswer result) {
    result_ = std::move(result);
    concluded_ = Clock::now();
  }

  const Meeting& meeting_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::mutex mutex_;
  RollCall roll_;
  std::vector<Hello> hellos_;      // by rank
  std::vector<char> has_fetched_;  // the result
  Table table_;
  std::optional<DoorAnswer> result_;
  Clock::time_point concluded_{};
};

Table receive_all(const Meeting& meeting, const HelloSource& hello, std::chrono::milliseconds timeout) {
  Reception reception(meeting, timeout);
  const LateDoor door(meeting.listen_at, meeting.token,
                      [&reception](DoorRequest request, std::span<const std::byte> body) -> DoorAnswer {
                        if (request == DoorRequest::start)
                          return reception.answer(from_bytes<StartCall>(body));
                        throw Error(Code::unavailable, "the job has not begun");
                      });
  bool has_own = false;
  while (true) {
    if (!has_own) {
      if (const auto own = hello()) {
        reception.take_own(*own);
        has_own = true;
      }
    }
    if (auto table = reception.look()) return *table;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Hello await_hello(const HelloSource& hello, Clock::time_point deadline) {
  while (true) {
    if (const auto own = hello()) return *own;
    if (Clock::now() >= deadline)
      throw Error(Code::deadline_exceeded, "this task's program has not come to Cluster::join");
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Table visit(const Meeting& meeting, const HelloSource& hello, std::chrono::milliseconds timeout) {
  const auto begin = Clock::now();
  const auto deadline = begin + timeout + kCoordinatorSpeaksFirst;
  const std::string& door = meeting.tasks[0].address;
  const auto body = to_bytes(StartCall{meeting.cluster, meeting.rank, await_hello(hello, deadline)});
  auto speaks = begin + RollCall::kPeriod;
  while (true) {
    std::string why;
    std::optional<DoorAnswer> answer;
    try {
      const auto until = std::min<Clock::time_point>(deadline, Clock::now() + kOneKnock);
      answer = ask_door(door, meeting.token, DoorRequest::start, body, until);
    } catch (const Error& error) {
      if (error.code() != Code::unavailable && error.code() != Code::deadline_exceeded) throw;
      why = error.what();
    }
    if (answer && answer->code != Code::ok) throw Error(answer->code, answer->message);
    if (answer && !answer->bytes.empty()) return from_bytes<Table>(answer->bytes);
    if (answer) speaks = Clock::now() + RollCall::kPeriod;  // the coordinator does
    const auto now = Clock::now();
    if (now >= deadline) {
      throw Error(Code::deadline_exceeded,
                  fmt::format("{} waited {} ms at the start (--start-timeout) for the coordinator at {}: {}",
                              meeting.self().name(), timeout.count(), door, why));
    }
    if (now >= speaks && !why.empty()) {
      say(fmt::format("{} is waiting for the coordinator at {}: {}", meeting.self().name(), door, why));
      speaks = now + RollCall::kPeriod;
    }
    std::this_thread::sleep_for(kBetweenKnocks);
  }
}

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
  for (std::size_t rank = 0; rank < meeting.tasks.size(); ++rank) {
    const StartTask& task = meeting.tasks[rank];
    const std::string job = task.role == Role::coordinator ? "chief" : std::string(to_string(task.role));
    meeting.cluster += (rank > 0 ? " " : "") + job + "=" + task.address;
    if (job == resolver.task_type() && task.index == resolver.task_id().value_or(0))
      meeting.rank = static_cast<int>(rank);
  }
  if (meeting.rank < 0) {
    throw Error(Code::invalid_argument, "the cluster has no \"evaluator\": give its address to every task");
  }
  const std::string& door = settings.text("door-address");
  meeting.listen_at = door.empty() ? meeting.tasks[0].address : door;
  const char* token = std::getenv(kTokenVariable);
  meeting.token = token != nullptr ? token_in(kTokenVariable, token) : token_of(meeting.cluster);
  return meeting;
}

Table meet(const Meeting& meeting, const HelloSource& hello, std::chrono::milliseconds timeout) {
  return meeting.rank == 0 ? receive_all(meeting, hello, timeout) : visit(meeting, hello, timeout);
}

}  // namespace capstan::cluster
