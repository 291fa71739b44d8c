// mpi_bootstrap.cpp -- launcher variables, the hash of the program, and the roll call over MPI.
#include "cluster/bootstrap/mpi_bootstrap.hpp"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/exit_codes.hpp"
#include "base/library_path.hpp"
#include "capstan/serialize.hpp"
#include "cluster/bootstrap/roll_call.hpp"
#include "cluster/roles/role_map.hpp"
#include "cluster/runtime.hpp"
#include "cluster/supervisor/file_limit.hpp"
#include "mpi/outbox.hpp"

namespace capstan::cluster {
namespace {

std::optional<int> integer_from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size()) return std::nullopt;
  return value;
}

void hash_file(XXH3_state_t& state, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(Code::internal,
                fmt::format("cannot read {}, which is needed to compare the ranks' binaries", path));
  }
  std::vector<char> block(1 << 20);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    XXH3_64bits_update(&state, block.data(), static_cast<std::size_t>(file.gcount()));
  }
}

/// Hashes the program and, if it is a file of its own, Capstan's library.
std::uint64_t hash_of_binary() {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  hash_file(*state, "/proc/self/exe");
  if (const std::string library = library_path(); !library.empty()) hash_file(*state, library);
  return XXH3_64bits_digest(state.get());
}

}  // namespace

std::optional<int> launched_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) {
    if (const auto size = integer_from_environment(variable)) return size;
  }
  // srun --mpi=pmix sets no size, but the Slurm step does.
  if (std::getenv("PMIX_RANK") != nullptr) return integer_from_environment("SLURM_STEP_NUM_TASKS");
  return std::nullopt;
}

int launched_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const auto rank = integer_from_environment(variable)) return *rank;
  }
  return 0;
}

void require_mpi_in_slurm_step() {
  const int tasks = integer_from_environment("SLURM_STEP_NUM_TASKS").value_or(1);
  if (tasks < 2 || !integer_from_environment("SLURM_PROCID") || launched_ranks()) return;
  throw Error(
      Code::failed_precondition,
      fmt::format(
          "srun started {} tasks without an MPI plugin, so each would be a job of its own; use srun "
          "--mpi=pmix (`srun --mpi=list` lists the plugins), or mpirun in the allocation; to run separate "
          "jobs, set --bootstrap alone",
          tasks));
}

Hello make_hello() { return {host_name(), getpid(), hash_of_binary(), {}, {}, {}}; }

namespace {

using Clock = std::chrono::steady_clock;

// Tags that a program is unlikely to use.
constexpr int kTagAnnouncement = 17249;  // the host's name; sent once the process has initialized MPI
constexpr int kTagHello = 17250;         // a Hello
constexpr int kTagVerdict = 17251;       // a Verdict
/// Poll interval. MPI's own waits would keep a core busy, and there may be more ranks than cores.
constexpr std::chrono::milliseconds kMpiPollPeriod{1};
/// The other ranks wait this much longer than rank 0, so that it reports the missing ranks first.
constexpr std::chrono::seconds kRankZeroReportsFirst{5};
/// Minimum time for the roll call, however long MPI_Init took.
constexpr std::chrono::seconds kShortestRollCall{2};
/// The wait in MPI_Init ends this much after --start-timeout. With an agent, the program then times out
/// first, and reports a more precise reason.
constexpr std::chrono::seconds kProgramReportsFirst{15};

struct Verdict {
  Code code = Code::ok;
  std::string message;
  std::uint64_t table_bytes = 0;  // size of the table that is broadcast next, if the code is ok
};

/// Receives the hellos of all ranks on rank 0. Throws Error: deadline_exceeded, failed_precondition.
std::vector<Hello> gather(const mpi::Communicator& communicator, int ranks, const HelloSource& hello_source,
                          std::chrono::milliseconds timeout) {
  const auto begin = Clock::now();
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) names.push_back("rank " + std::to_string(rank));
  RollCall roll(names, begin);
  std::vector<Hello> hellos(static_cast<std::size_t>(ranks));
  std::string unreadable;
  // Number of announcements to come. All are received here, so that none reaches a later user of this
  // communicator, or of one to which MPI gives the same context ID.
  int announcements_to_come = ranks - 1;
  const auto arrive = [&](std::size_t rank, Hello hello) {
    hellos[rank] = std::move(hello);
    roll.joined(rank);
  };
  while (true) {
    bool any = false;
    while (const auto announcement = communicator.take(kTagAnnouncement)) {
      const auto rank = static_cast<std::size_t>(announcement->from);
      roll.set_state(rank, names[rank] + " on " + from_bytes<std::string>(announcement->bytes),
                     "its program has not opened its network");
      --announcements_to_come;
      any = true;
    }
    while (const auto hello = communicator.take(kTagHello)) {
      any = true;
      try {
        arrive(static_cast<std::size_t>(hello->from), from_bytes<Hello>(hello->bytes));
      } catch (const Error& error) {
        unreadable = fmt::format("rank {} runs a different build than rank 0: {}", hello->from, error.what());
        roll.joined(static_cast<std::size_t>(hello->from));
      }
    }
    if (!roll.has_joined(0)) {
      if (auto hello = hello_source()) arrive(0, std::move(*hello));
    }
    if (roll.complete() && announcements_to_come == 0) {
      if (!unreadable.empty()) throw Error(Code::failed_precondition, unreadable);
      return hellos;
    }
    const auto now = Clock::now();
    if (const auto text = roll.due(now)) std::fprintf(stderr, "capstan: %s\n", text->c_str());
    if (now >= begin + timeout) {
      throw Error(Code::deadline_exceeded, fmt::format("waited {} ms at the start (--start-timeout) for {}",
                                                       timeout.count(), roll.missing()));
    }
    if (!any) std::this_thread::sleep_for(kMpiPollPeriod);
  }
}

/// Sends the hello of a rank other than 0 to rank 0, and waits for the verdict.
Verdict send_and_await(const mpi::Communicator& communicator, const HelloSource& hello_source,
                       mpi::Outbox& outbox, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout + kRankZeroReportsFirst;
  outbox.send(0, kTagAnnouncement, to_bytes(host_name()));
  bool sent = false;
  while (Clock::now() < deadline) {
    if (!sent) {
      if (const auto hello = hello_source()) {
        outbox.send(0, kTagHello, to_bytes(*hello));
        sent = true;
      }
    }
    if (const auto verdict = communicator.take(kTagVerdict, 0)) return from_bytes<Verdict>(verdict->bytes);
    std::this_thread::sleep_for(kMpiPollPeriod);
  }
  return {Code::deadline_exceeded,
          fmt::format("waited {} ms at the start (--start-timeout) for rank 0", timeout.count()), 0};
}

}  // namespace

Table exchange(const mpi::Communicator& communicator, const HelloSource& hello,
               std::chrono::milliseconds timeout) {
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  mpi::Outbox outbox(communicator);
  Verdict verdict;
  std::vector<std::byte> table;
  if (rank == 0) {
    try {
      table = to_bytes(make_table(gather(communicator, ranks, hello, timeout)));
      verdict.table_bytes = table.size();
    } catch (const Error& error) {
      verdict = {error.code(), error.what(), 0};
    } catch (const std::exception& error) {
      verdict = {Code::internal, error.what(), 0};
    }
    for (int to = 1; to < ranks; ++to) outbox.send(to, kTagVerdict, to_bytes(verdict));
  } else {
    verdict = send_and_await(communicator, hello, outbox, timeout);
  }
  if (verdict.code != Code::ok) throw Error(verdict.code, verdict.message);
  if (!outbox.wait(Clock::now() + timeout + kRankZeroReportsFirst)) {
    throw Error(Code::deadline_exceeded,
                fmt::format("waited {} ms at the start (--start-timeout) for other ranks to receive the "
                            "messages of this rank",
                            timeout.count()));
  }
  table.resize(verdict.table_bytes);
  communicator.broadcast(table);
  auto out = from_bytes<Table>(table);
  out.rank = rank;
  return out;
}

Table exchange_within(const mpi::Communicator& communicator, const HelloSource& hello,
                      std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  mpi::Duplicate duplicate(communicator);
  while (!duplicate.done()) {
    if (Clock::now() >= deadline) {
      throw Error(
          Code::deadline_exceeded,
          fmt::format(
              "waited {} ms at the start (--start-timeout): not all ranks of the communicator have called "
              "cluster_from",
              timeout.count()));
    }
    std::this_thread::sleep_for(kMpiPollPeriod);
  }
  try {
    Table table = exchange(duplicate.communicator(), hello, timeout);
    duplicate.free();
    return table;
  } catch (const Error& error) {
    // Freeing the duplicate is collective and would hang, because some ranks are missing.
    if (error.code() != Code::deadline_exceeded) duplicate.free();
    throw;
  }
}

namespace {

/// Reports while MPI_Init waits for other ranks, and ends the process after the timeout. MPI does neither.
class InitWatchdog {
 public:
  InitWatchdog(int rank, int ranks, std::chrono::milliseconds timeout)
      : thread_([=, this] {
          std::unique_lock lock(mutex_);
          const auto begin = Clock::now();
          // Other ranks wait longer: only rank 0 reports the reason, and the exit of any rank ends the job.
          const auto deadline = begin + timeout + kProgramReportsFirst +
                                (rank == 0 ? Clock::duration::zero() : kRankZeroReportsFirst);
          while (!done_.wait_until(lock,
                                   std::min<Clock::time_point>(Clock::now() + RollCall::kPeriod, deadline),
                                   [this] { return initialized_; })) {
            const bool timed_out = Clock::now() >= deadline;
            if (timed_out && rank == 0) {
              std::fprintf(
                  stderr,
                  "capstan: MPI_Init took longer than the start timeout; check the hosts of the %d ranks, or "
                  "raise --start-timeout\n",
                  ranks);
            }
            if (timed_out) _exit(kExitLostRank);
            if (rank != 0) continue;
            std::fprintf(
                stderr,
                "capstan: waiting in MPI_Init for %d s; some of the launcher's %d ranks may not have called "
                "it, and MPI does not report which\n",
                static_cast<int>(std::chrono::round<std::chrono::seconds>(Clock::now() - begin).count()),
                ranks);
          }
        }) {}
  ~InitWatchdog() {
    {
      const std::lock_guard lock(mutex_);
      initialized_ = true;
    }
    done_.notify_one();
    thread_.join();
  }
  InitWatchdog(const InitWatchdog&) = delete;
  InitWatchdog& operator=(const InitWatchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool initialized_ = false;  // MPI_Init has returned
  std::thread thread_;
};

}  // namespace

Table exchange_in_world(const HelloSource& hello, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  // All ranks connect to rank 0, and each connection may take a file descriptor.
  if (launched_rank() == 0) raise_file_limit_for(static_cast<std::size_t>(launched_ranks().value_or(0)));
  {
    const InitWatchdog watchdog(launched_rank(), launched_ranks().value_or(0), timeout);
    mpi::start();
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  const auto world = mpi::Communicator::world();
  const int ranks = world.size();
  try {
    if (const auto launched = launched_ranks(); launched && *launched != ranks) {
      throw Error(Code::failed_precondition, "the launcher started " + std::to_string(*launched) +
                                                 " ranks, but MPI sees " + std::to_string(ranks) +
                                                 ": this program was built with a different MPI than the "
                                                 "mpirun in use (or srun lacks --mpi=pmix)");
    }
    return exchange(world, hello, std::max<std::chrono::milliseconds>(left, kShortestRollCall));
  } catch (const Error& error) {
    // After a timeout, MPI_Finalize would hang: it waits for all ranks, and some are missing.
    if (error.code() != Code::deadline_exceeded) mpi::end();
    throw;
  }
}

void finalize_world() noexcept { mpi::end(); }

}  // namespace capstan::cluster
