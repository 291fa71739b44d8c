// ranks.cpp -- a job with many ranks: time to form the cluster, cost of the first push, memory.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "capstan/serialize.hpp"
#include "cluster/runtime.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"
#include "perf/scale/process_memory.hpp"
#include "perf/scale/scale.hpp"
#include "protocol/ps_messages.hpp"
#include "strategy/ps_calls.hpp"
#include "strategy/strategy.hpp"
#include "transport/message_types.hpp"

namespace capstan::perf {
namespace {

constexpr std::int64_t kRows = 1024;  // per ps
constexpr std::int64_t kRowWidth = 64;
constexpr std::uint64_t kVersionBytes = 4096;  // memory for the versions of up to 64 shards
constexpr double kMiB = 1 << 20;

/// measured: the first push, which connects to every ps and gets a ring in each; bound: a second push.
Timings push_twice(Variable<float> variable, std::vector<std::int64_t> ids, Counter counter,
                   std::int64_t workers) {
  const std::vector<float> gradient(ids.size() * kRowWidth, -1);
  const auto push = [&] {
    variable.push(ids, gradient);
    variable.flush();
  };
  Timings timings;
  timings.verified = true;  // the coordinator verifies the sums
  timings.measured.push_back(seconds_of(push));
  counter.fetch_add(1);
  // Sleeps instead of polling: many ranks share few cores, which the ranks that are still connecting need.
  while (counter.value() < workers) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  timings.bound.push_back(seconds_of(push));
  return timings;
}

/// Returns the size of a heap after the allocation of these pieces, in this order. A piece larger than half a
/// slab gets its own memory; other pieces share slabs, and the rest of a slab stays unused.
std::uint64_t heap_of(const std::vector<std::uint64_t>& pieces, std::uint64_t slab) {
  std::uint64_t bytes = 0;
  std::uint64_t left = 0;
  for (std::uint64_t piece : pieces) {
    piece = (piece + 4095) / 4096 * 4096;
    if (piece > slab / 2) {
      bytes += piece;
    } else if (piece <= left) {
      left -= piece;
    } else {
      bytes += slab;
      left = slab - piece;
    }
  }
  return bytes;
}

std::vector<protocol::PsStatistics> query_ps() {
  std::vector<protocol::PsStatistics> all;
  for (const auto& answer :
       strategy::ask_every_ps(strategy::Strategy::current()->context().client(), transport::kPsStatistics, {},
                              std::chrono::seconds(60), "report its statistics")) {
    all.push_back(from_bytes<protocol::PsStatistics>(answer));
  }
  return all;
}

/// Adds the results of a job; they are verified if its sums are correct.
class Job {
 public:
  Job(const Session& session, bool summed) : session_(session), summed_(summed) {}

  Result result(const std::string& name, const char* unit) const {
    Result result{name, name, static_cast<std::uint64_t>(session_.workers), "workers", unit};
    result.verified = summed_;
    return result;
  }
  void add_times(const Result& result, double scale, const std::vector<double>& samples) const {
    session_.report.add(time_result(result, scale, samples));
  }

  /// Adds the memory and file descriptors of the ranks of a role on this host: median and 99th percentile.
  void add_resident(Role role) const {
    std::vector<double> anonymous;
    std::vector<double> shared;
    std::vector<double> files;
    const cluster::Runtime& runtime = *session_.cluster.runtime();
    for (const cluster::Member& member : runtime.members()) {
      if (member.role != role || member.host != runtime.self().host) continue;
      const auto memory = memory_of(member.pid);
      if (!memory) continue;
      anonymous.push_back(static_cast<double>(memory->anonymous));
      shared.push_back(static_cast<double>(memory->shared));
      files.push_back(static_cast<double>(open_files(member.pid)));
    }
    if (anonymous.empty()) return;
    const auto name = to_string(role);
    add_times(result(fmt::format("a {}'s own memory", name), "MiB"), 1 / kMiB, anonymous);
    add_times(result(fmt::format("a {}'s shared memory", name), "MiB"), 1 / kMiB, shared);
    add_times(result(fmt::format("a {}'s file descriptors", name), "files"), 1, files);
  }

  /// Adds the heap size that each ps reports, which must equal the formula exactly. Shards and their versions
  /// are allocated first, then rings.
  void add_heaps(const std::vector<protocol::PsStatistics>& before, std::uint64_t shard_bytes) const {
    const Settings& settings = session_.cluster.runtime()->settings();
    const std::uint64_t slab = settings.bytes("heap-slab-bytes");
    const std::vector<std::uint64_t> shards{shard_bytes, kVersionBytes};
    std::vector<std::uint64_t> pieces = shards;
    pieces.insert(pieces.end(), static_cast<std::size_t>(session_.workers),
                  settings.bytes("push-ring-bytes"));
    const auto after = query_ps();
    for (std::size_t i = 0; i < after.size(); ++i) {
      Result heap = result(fmt::format("heap of ps {}", i), "MiB");
      heap.verified = summed_ && before[i].heap_bytes == heap_of(shards, slab) &&
                      after[i].heap_bytes == heap_of(pieces, slab);
      heap.bound = static_cast<double>(heap_of(pieces, slab)) / kMiB;
      heap.bound_name = "shards, versions, and a ring per worker, in slabs";
      add_times(heap, 1 / kMiB, {static_cast<double>(after[i].heap_bytes)});
    }
  }

 private:
  const Session& session_;
  bool summed_;
};

}  // namespace

void measure_ranks(const Session& session) {
  const double start = seconds_since_start();
  const std::int64_t ps = session.cluster.count(Role::ps);
  const Variable<float> variable("scale", Shape{kRows * ps, kRowWidth}, initializers::zeros(),
                                 {optimizers::SGD{1.0}});
  const auto before = query_ps();
  std::vector<std::int64_t> ids;  // one row of each ps
  for (std::int64_t i = 0; i < ps; ++i) ids.push_back(i * kRows);
  Timings pushes;
  append_slowest(pushes, session.on_all_workers<&push_twice>(variable, ids));
  const std::vector<float> sums = variable.lookup(ids).values;
  const auto expected = static_cast<float>(2 * session.workers);
  const Job job(session, std::all_of(sums.begin(), sums.end(), [&](float sum) { return sum == expected; }));

  job.add_times(job.result("from the coordinator's start until the cluster is formed", "s"), 1, {start});
  Result first = job.result("first push of all workers, with connections and rings", "ms");
  first.bound = 1e3 * pushes.bound[0];
  first.bound_name = "a second push";
  job.add_times(first, 1e3, pushes.measured);
  // Between hosts there may be no ring.
  const auto& runtime = *session.cluster.runtime();
  if (runtime.membership().single_host() && runtime.settings().text("window") != "am") {
    job.add_heaps(before, kRows * kRowWidth * sizeof(float));
  }
  job.add_resident(Role::ps);
  job.add_resident(Role::worker);
}

}  // namespace capstan::perf
