// ranks.cpp -- a job of ranks: how long until it stands, what its first push costs, what memory it takes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "capstan/serialize.hpp"
#include "cluster/message_types.hpp"
#include "cluster/runtime.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"
#include "perf/scale/process_memory.hpp"
#include "perf/scale/scale.hpp"
#include "shard/protocol.hpp"
#include "strategy/strategy.hpp"

namespace capstan::perf {
namespace {

constexpr std::int64_t kWidth = 64;
constexpr double kMiB = 1 << 20;

/// One row of each ps.
std::vector<std::int64_t> one_row_a_ps(std::int64_t rows, std::int64_t ps) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < ps; ++i) ids.push_back(i * rows / ps);
  return ids;
}

/// figure: the first push, which connects to every ps and gets a ring in each; bound: one more like it.
Timings push_twice(Variable<float> variable, std::vector<std::int64_t> ids, Counter counter,
                   std::int64_t workers) {
  const std::vector<float> gradient(ids.size() * kWidth, -1);
  const auto push = [&] {
    variable.push(ids, gradient);
    variable.flush();
  };
  Timings timings;
  timings.verified = true;  // the coordinator looks at the sums
  timings.figure.push_back(seconds_of(push));
  counter.fetch_add(1);
  // Many ranks share few cores: one that polled would take its core from those that still connect.
  while (counter.value() < workers) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  timings.bound.push_back(seconds_of(push));
  return timings;
}

/// What pieces of these sizes, allotted in this order, take of a heap that grows by slabs: a piece of more
/// than half a slab gets memory of its own, others share slabs, and what is left at a slab's end is lost.
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

std::vector<shard::PsStatistics> ask_ps() {
  std::vector<shard::PsStatistics> all;
  for (const auto& answer : strategy::Strategy::current()->ask_every_ps(
           cluster::kPsStatistics, {}, std::chrono::seconds(60), "tell its statistics")) {
    all.push_back(from_bytes<shard::PsStatistics>(answer));
  }
  return all;
}

Result amount(const std::string& name, std::uint64_t workers, bool verified,
              const std::vector<double>& bytes) {
  Result result{name, name, workers, "workers", "MiB"};
  result.verified = verified;
  return time_result(std::move(result), 1 / kMiB, bytes);
}

/// Of the ranks of a role on this host.
void report_resident(const Session& session, Role role, bool verified) {
  const auto workers = static_cast<std::uint64_t>(session.workers);
  std::vector<double> anonymous;
  std::vector<double> shared;
  for (const cluster::Member& member : session.cluster.runtime()->members()) {
    const auto& self = session.cluster.runtime()->self();
    const auto memory = member.host == self.host ? memory_of(member.pid) : std::nullopt;
    if (member.role != role || !memory) continue;
    anonymous.push_back(static_cast<double>(memory->anonymous));
    shared.push_back(static_cast<double>(memory->shared));
  }
  if (anonymous.empty()) return;
  const auto name = to_string(role);
  session.report.add(amount(fmt::format("a {}'s own memory", name), workers, verified, anonymous));
  session.report.add(amount(fmt::format("a {}'s shared memory", name), workers, verified, shared));
}

}  // namespace

void measure_ranks(const Session& session) {
  const double start = seconds_since_start();
  const auto workers = static_cast<std::uint64_t>(session.workers);
  const std::int64_t ps = session.cluster.count(Role::ps);
  const auto& settings = session.cluster.runtime()->settings();
  const auto rows = static_cast<std::int64_t>(std::max<std::uint64_t>(session.options.rows, 1024));
  const Variable<float> variable("scale", {rows, kWidth}, initializers::zeros(), {optimizers::SGD{1.0}});
  const auto before = ask_ps();

  const std::vector<std::int64_t> ids = one_row_a_ps(rows, ps);
  Timings pushes;
  pushes.verified = true;
  append_slowest(pushes, session.on_all_workers<&push_twice>(variable, ids));
  const std::vector<float> values = variable.lookup(ids).values;
  const bool summed = std::all_of(values.begin(), values.end(), [&](float value) {
    return value == 2 * static_cast<float>(session.workers);
  });

  const auto add_time = [&](const char* name, const char* unit, double scale, double seconds) -> Result {
    Result result{name, name, workers, "workers", unit};
    result.verified = summed;
    return time_result(std::move(result), scale, {seconds});
  };
  session.report.add(add_time("from the coordinator's start until the cluster stands", "s", 1, start));
  Result first =
      add_time("first push of all workers, with connections and rings", "ms", 1e3, pushes.figure[0]);
  first.bound = 1e3 * pushes.bound[0];
  first.bound_name = "one more push";
  session.report.add(first);

  // Shards and their versions were there first, then came the rings. A ps on another host has none.
  const std::uint64_t shard_bytes = static_cast<std::uint64_t>(rows / ps * kWidth) * sizeof(float);
  std::vector<std::uint64_t> pieces{shard_bytes, 4096};
  const std::uint64_t slab = settings.bytes("heap-slab-bytes");
  const auto after = ask_ps();
  const auto& members = session.cluster.runtime()->members();
  for (std::int64_t i = 0; i < ps; ++i) {
    std::vector<std::uint64_t> expected = pieces;
    const std::string& host = session.cluster.runtime()->member(Role::ps, static_cast<int>(i)).host;
    for (const cluster::Member& member : members) {
      const bool has_ring = member.role == Role::worker && member.host == host;
      if (has_ring) expected.push_back(settings.bytes("push-ring-bytes"));
    }
    const std::uint64_t formula = heap_of(expected, slab);
    const std::uint64_t found = after[static_cast<std::size_t>(i)].heap_bytes;
    const bool right =
        summed && found == formula && before[static_cast<std::size_t>(i)].heap_bytes == heap_of(pieces, slab);
    Result result = amount(fmt::format("heap of ps {}", i), workers, right, {static_cast<double>(found)});
    result.bound = static_cast<double>(formula) / kMiB;
    result.bound_name = "shards, versions, and a ring a worker, in slabs";
    session.report.add(result);
  }
  report_resident(session, Role::ps, summed);
  report_resident(session, Role::worker, summed);
}

}  // namespace capstan::perf
