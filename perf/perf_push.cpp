// perf_push.cpp -- push rate of a worker, in rows of gradient per second, applied by SGD.
//
// Bounds: a prefetching loop that updates the same rows of a table in this process; and two threads, of which
// one writes the gradients to memory and the other applies them; between hosts a raw TCP stream; for combined
// pushes and for bfloat16, the same pushes without that option. Rival: MPI_Accumulate between the same ranks,
// or between hosts the bandwidth from --bounds. Gradients are integers, so
// that the sums in the table are exact in any order; they are compared with a local copy of the table before
// anything is timed.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "perf/bench/memory.hpp"
#include "perf/bench/mpi_ranks.hpp"
#include "perf/bench/mpi_table.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/row_case.hpp"
#include "perf/bench/statistics.hpp"
#include "perf/bench/two_thread_sgd.hpp"
#include "transport/fabric.hpp"

namespace capstan::perf {
namespace {

/// Large, because a sample ends with one flush, whose cost should not count: training rarely flushes.
constexpr std::uint64_t kSampleIds = 262144;
constexpr int kMinCalls = 4;

constexpr std::uint64_t kLatencyRows[] = {1, 32, 1024};
constexpr std::uint64_t kLatencyWidth = 64;
constexpr std::uint64_t kRowsInCache = 16384;  // 4 MiB: excludes the cache misses of the table

/// Integers from -2 to 2, with a mean of 0, so that a row that is pushed repeatedly stays small.
float gradient_of(std::uint64_t entry, std::uint64_t column) {
  return static_cast<float>(static_cast<int>((entry * 7 + column) % 5) - 2);
}

void fill_gradient(std::span<float> gradient, std::uint64_t width) {
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = gradient_of(i / width, i % width);
}

/// Arrays of a worker; persist between its closures.
struct Arrays {
  Array table;
  Array gradient;
};

/// Returns the ids of one sample, which a worker pushes to verify a case.
std::vector<std::int64_t> checked_ids(const RowCase& c, std::uint64_t worker) {
  std::vector<std::int64_t> ids(c.sample_ids());
  c.draw_ids(1000 + worker).draw(ids);
  ids[0] = 0;
  ids.back() = static_cast<std::int64_t>(c.rows - 1);
  return ids;
}

std::span<const std::int64_t> call_of(std::span<const std::int64_t> ids, const RowCase& c, int k) {
  return ids.subspan(static_cast<std::size_t>(k) * c.call, c.call);
}

void push_all(const RowCase& c, std::span<const std::int64_t> ids, const Variable<float>& variable,
              std::span<const float> gradient) {
  for (int k = 0; k < c.calls; ++k) variable.push(call_of(ids, c, k), gradient);
  variable.flush();
}

/// Pushes the ids of checked_ids(). Always returns true: the coordinator verifies the result.
bool push_for_check(RowCase c, Variable<float> variable, Counter counter, std::int64_t workers) {
  std::vector<float> gradient(c.call * c.width);
  fill_gradient(gradient, c.width);
  const auto ids = checked_ids(c, static_cast<std::uint64_t>(current_worker_index()));
  StartBarrier(counter, workers).wait();
  push_all(c, ids, variable, gradient);
  return true;
}

/// Adds the pushes that `workers` ranks make for verification to rows [first_row, ...) of a local copy.
void add_to_replica(const RowCase& c, std::uint64_t workers, float rate, std::uint64_t first_row,
                    std::span<float> replica) {
  for (std::uint64_t worker = 0; worker < workers; ++worker) {
    const auto ids = checked_ids(c, worker);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::uint64_t at = (static_cast<std::uint64_t>(ids[i]) - first_row) * c.width;
      if (static_cast<std::uint64_t>(ids[i]) < first_row || at >= replica.size()) continue;
      for (std::uint64_t j = 0; j < c.width; ++j) replica[at + j] -= rate * gradient_of(i % c.call, j);
    }
  }
}

/// With `rounded`, messages may carry the sums as bfloat16.
bool verified(const Session& session, const RowCase& c, const Variable<float>& variable,
              bool rounded = false) {
  std::vector<float> replica(c.rows * c.width, 0);
  variable.assign(replica);
  session.on_all_workers<&push_for_check>(c, variable);
  add_to_replica(c, static_cast<std::uint64_t>(session.workers), 1, 0, replica);
  const auto same = [&](float a, float b) {
    return a == b || (rounded && a == static_cast<float>(bfloat16(b)));
  };
  const auto pulled = variable.pull();
  return std::equal(pulled.begin(), pulled.end(), replica.begin(), replica.end(), same);
}

Timings measure(RowCase c, Variable<float> variable, Counter counter, std::int64_t workers) {
  static thread_local Arrays arrays;
  const std::span<float> gradient = arrays.gradient.get(c.call * c.width, true);
  fill_gradient(gradient, c.width);
  const std::span<float> table =
      c.with_bound ? arrays.table.get(c.rows * c.width, c.huge_pages) : std::span<float>();
  std::vector<std::int64_t> ids(c.sample_ids());
  Ids stream = c.draw_ids(static_cast<std::uint64_t>(current_worker_index()));
  int ahead = kPrefetchDistances[0];

  const auto push = [&] { push_all(c, ids, variable, gradient); };
  const auto loop = [&] {
    for (int k = 0; k < c.calls; ++k) {
      scatter_sgd(table.data(), call_of(ids, c, k), c.width, ahead, 1, gradient.data());
    }
    use_memory();
  };
  std::optional<TwoThreadSgd> threads;
  const auto two_threads = [&] {
    for (int k = 0; k < c.calls; ++k) threads->push(call_of(ids, c, k), gradient.data());
    threads->flush();
  };
  const auto draw = [&] { stream.draw(ids); };

  Timings timings;
  timings.verified = true;  // the coordinator compares
  const StartBarrier barrier(counter, workers);
  if (c.two_threads) {
    ahead = best_distance([&](int distance) {
      draw();
      ahead = distance;
      return seconds_of(loop);
    });
    threads.emplace(table, c.width, ahead);
    take_turns(c.warmup, c.samples, barrier, true, draw, push, two_threads, timings);
    timings.bound_name = std::to_string(ahead) + " rows ahead";
  } else {
    compare_with_loop(c, barrier, ahead, draw, push, loop, timings);
  }
  return timings;
}

/// Compares pushes to a variable with some option with the same pushes to one without it.
Timings measure_option(RowCase c, Variable<float> variable, Variable<float> plain, Counter counter,
                       std::int64_t workers) {
  static thread_local Array array;
  const std::span<float> gradient = array.get(c.call * c.width, true);
  fill_gradient(gradient, c.width);
  std::vector<std::int64_t> ids(c.sample_ids());
  Ids stream = c.draw_ids(static_cast<std::uint64_t>(current_worker_index()));
  Timings timings;
  timings.verified = true;  // the coordinator compares
  take_turns(
      c.warmup, c.samples, StartBarrier(counter, workers), true, [&] { stream.draw(ids); },
      [&] { push_all(c, ids, variable, gradient); }, [&] { push_all(c, ids, plain, gradient); }, timings);
  return timings;
}

void compare_option(const Session& session, RowTables& tables, const std::string& group,
                    const VariableOptions& options, const std::string& bound) {
  RowTables with_option([](const Variable<float>&) {}, group.substr(0, group.find(' ')));
  for (const RowCase& c : row_cases(session.options, group, kSampleIds, kMinCalls)) {
    const Variable<float>& plain = tables.get(c.rows, c.width, {optimizers::SGD{1.0}});
    const Variable<float>& variable = with_option.get(c.rows, c.width, options);
    Timings timings;
    timings.verified = verified(session, c, variable, options.communication_dtype.has_value());
    for (int repeat = 0; repeat < session.options.repeat; ++repeat) {
      append_slowest(timings,
                     session.on_all_workers<&measure_option>(for_repeat(c, repeat), variable, plain));
    }
    session.report.add(row_result(c, timings, session, bound));
  }
}

std::vector<RowCase> latency_cases(Options options) {
  options.dims = {kLatencyWidth};
  options.call_ids = {std::begin(kLatencyRows), std::end(kLatencyRows)};
  std::vector<RowCase> cases = row_cases(options, "push and flush", 1, 1);
  options.rows = kRowsInCache;
  for (RowCase& c : row_cases(options, "push and flush, table in cache", 1, 1)) cases.push_back(c);
  return cases;
}

void measure_latencies(const Session& session, RowTables& tables) {
  constexpr std::uint64_t kRowsPerIteration =
      51200;  // large, to sample the tail of the latencies and to let the scheduler settle
  const Options& options = session.options;
  for (RowCase& c : latency_cases(options)) {
    c.samples =
        options.iters * static_cast<int>(std::clamp<std::uint64_t>(kRowsPerIteration / c.call, 50, 500));
    c.with_bound = loop_bounds_rows(session);
    const Variable<float>& variable = tables.get(c.rows, c.width, {optimizers::SGD{1.0}});
    Timings timings;
    timings.verified = verified(session, c, variable);
    for (int repeat = 0; repeat < options.repeat; ++repeat) {
      append_slowest(timings, session.on_all_workers<&measure>(for_repeat(c, repeat), variable));
    }
    Result result{c.name, c.group, c.call, "rows a push", "us"};
    result.verified = timings.verified;
    result = time_result(result, 1e6, timings.measured);
    if (!timings.bound.empty()) {
      result.bound = 1e6 * median(timings.bound);
      result.bound_name = "scatter-SGD loop in one process, " + timings.bound_name;
    }
    session.report.add(result);
  }
}

void measure_all(const Session& session) {
  std::vector<RowCase> cases = row_cases(session.options, "push", kSampleIds, kMinCalls);
  if (loop_bounds_rows(session)) {
    for (RowCase& c : row_cases(session.options, "push, two threads", kSampleIds, kMinCalls)) {
      c.two_threads = true;
      cases.push_back(c);
    }
  }
  std::vector<Timings> timings(cases.size());
  RowTables tables([](const Variable<float>&) {});
  for (int repeat = 0; repeat < session.options.repeat; ++repeat) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      RowCase& c = cases[i];
      c.with_bound = loop_bounds_rows(session);
      const Variable<float>& variable = tables.get(c.rows, c.width, {optimizers::SGD{1.0}});
      if (repeat == 0) timings[i].verified = verified(session, c, variable);
      append_slowest(timings[i], session.on_all_workers<&measure>(for_repeat(c, repeat), variable));
    }
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string bound = cases[i].two_threads ? "two threads: one writes gradients and one applies them"
                                                   : "scatter-SGD loop in one process";
    session.report.add(row_result(cases[i], timings[i], session, bound));
  }
  const Optimizer sgd = optimizers::SGD{1.0};
  compare_option(session, tables, "combined push", {.optimizer = sgd, .combine_pushes = CombinePushes{}},
                 "the same pushes, not combined");
  compare_option(session, tables, "bfloat16 push", {.optimizer = sgd, .communication_dtype = DType::bfloat16},
                 "the same pushes of float32");
  measure_latencies(session, tables);
}

/// Pushes are pieces with 32-bit row numbers and gradients, and a flush is the count that the server returns.
std::vector<TcpCase> tcp_cases(const Cluster&, const Options& options) {
  std::vector<TcpCase> found;
  const auto add = [&](const RowCase& c, std::optional<double> work) {
    const TcpExchange exchange{.calls = static_cast<std::uint64_t>(c.calls),
                               .request = c.call * (c.width * sizeof(float) + sizeof(std::uint32_t)),
                               .piece = transport::kPieceBytes};
    found.push_back({c.name, exchange, work});
  };
  for (const RowCase& c : row_cases(options, "push", kSampleIds, kMinCalls)) {
    add(c, static_cast<double>(c.sample_ids()));
  }
  for (const RowCase& c : latency_cases(options)) add(c, std::nullopt);
  return found;
}

void accumulate_all(const RowCase& c, std::span<const std::int64_t> ids, const MpiTable& table,
                    std::span<const float> values) {
  for (int k = 0; k < c.calls; ++k) table.accumulate_rows(call_of(ids, c, k), values.data());
  table.flush();
}

/// Collective. Returns true on all ranks if every ps has the exact sums.
bool rival_verified(const RowCase& c, const MpiRanks& ranks, const MpiTable& table,
                    std::span<const float> values) {
  std::fill(table.local_rows().begin(), table.local_rows().end(), 0.0f);
  table.sync();
  ranks.barrier();
  if (ranks.role() == Role::worker) {
    const auto ids = checked_ids(c, static_cast<std::uint64_t>(ranks.worker_index()));
    accumulate_all(c, ids, table, values);
  }
  ranks.barrier();
  table.sync();
  std::vector<float> replica(table.local_rows().size(), 0);
  if (ranks.role() == Role::ps) {
    add_to_replica(c, ranks.workers().size(), -1, table.first_row(), replica);
  }
  return ranks.true_on_all(std::equal(replica.begin(), replica.end(), table.local_rows().begin()));
}

std::vector<double> time_accumulates(const RowCase& c, const MpiRanks& ranks, const MpiTable& table,
                                     std::span<const float> values) {
  std::vector<std::int64_t> ids(c.sample_ids());
  Ids stream = c.draw_ids(static_cast<std::uint64_t>(ranks.worker_index()));
  std::vector<double> seconds;
  for (int sample = -1; sample < c.samples; ++sample) {
    stream.draw(ids);
    MPI_Barrier(ranks.worker_comm());
    const double time = seconds_of([&] { accumulate_all(c, ids, table, values); });
    if (sample >= 0) seconds.push_back(time);
  }
  return seconds;
}

void rival(const MpiRanks& ranks, const Options& options, Report& report) {
  std::uint64_t largest = options.rows_of(kLatencyWidth) * kLatencyWidth;
  for (const std::uint64_t dim : options.dims) largest = std::max(largest, options.rows_of(dim) * dim);
  MpiTable table(ranks, largest);
  table.set_shape(largest, 1);
  if (ranks.role() == Role::worker) table.read_once();
  std::vector<float> values;
  // MPI_Accumulate takes several times as long, so a sample has fewer calls.
  for (const RowCase& c : row_cases(options, "push", kSampleIds / 4, 1)) {
    table.set_shape(c.rows, c.width);
    values.resize(c.call * c.width);
    fill_gradient(values, c.width);
    if (!rival_verified(c, ranks, table, values)) continue;
    std::vector<double> seconds;
    if (ranks.role() == Role::worker) seconds = time_accumulates(c, ranks, table, values);
    seconds = ranks.slowest(seconds, c.samples);
    if (ranks.rank() != 0) continue;
    const double rows = static_cast<double>(c.sample_ids() * ranks.workers().size());
    report.set_better_rival(c.name, rows / median(seconds), "MPI_Accumulate, one per row");
  }
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  using namespace capstan::perf;
  return run(
      argc, argv,
      {.question =
           "Measures rows per second of Variable::push with SGD, compared with a plain scatter loop and "
           "MPI_Accumulate, and the latency of a push and flush.",
       .measure = &measure_all,
       .rival = &rival,
       .tcp_cases = &tcp_cases});
}
