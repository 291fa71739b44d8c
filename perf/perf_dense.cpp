// perf_dense.cpp -- bandwidth of dense pulls and pushes, by size.
//
// Bound on one host: memcpy of the same bytes from a cold source, and for pushes memcpy and a pass of SGD in
// place. Between hosts: a raw TCP stream or the bandwidth of the link from --bounds, with several pulls in
// flight. Capstan and memcpy read a source larger than any cache in a scattered order of blocks, so that each
// block is cold. Returned pulls are compared with the same pull into an array.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstring>
#include <deque>
#include <vector>

#include "cluster/runtime.hpp"
#include "perf/bench/memory.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/row_case.hpp"
#include "perf/bench/row_loops.hpp"
#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

constexpr std::uint64_t kWidth = 256;  // rows of 1 KiB
constexpr std::uint64_t kRowBytes = kWidth * sizeof(float);
constexpr std::uint64_t kSourceBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kSampleBytes = 1 << 20;
/// Large, because a sample ends with one flush, whose cost should not count: training rarely flushes.
constexpr std::uint64_t kPushSampleBytes = 16 << 20;
constexpr int kInFlightBetweenHosts = 4;
constexpr const char* kDenseBound = "dense_bandwidth";

std::uint64_t factor = 4;  // --factor

/// One size, serialized to the workers.
struct DenseCase {
  std::uint64_t rows = 0;         // per call
  std::uint64_t source_rows = 0;  // rows of the variable to pull from
  int calls = 1;                  // per sample
  int in_flight = 1;
  int warmup = 0;
  int samples = 0;
  bool with_bound = true;
  bool huge_pages = true;

  std::uint64_t floats() const { return rows * kWidth; }
  std::uint64_t bytes() const { return rows * kRowBytes; }
};

/// Order of the blocks: each once, far from its predecessor.
class Walk {
 public:
  explicit Walk(const DenseCase& c) : rows_(c.rows), blocks_(c.source_rows / c.rows), order_(blocks_) {}
  std::uint64_t next_row() { return order_(next_++ % blocks_) * rows_; }

 private:
  std::uint64_t rows_;
  std::uint64_t blocks_;
  Scramble order_;
  std::uint64_t next_ = 0;
};

std::span<float> part(std::span<float> out, const DenseCase& c, int i) {
  return out.subspan(static_cast<std::size_t>(i) * c.floats(), c.floats());
}

/// Runs c.calls pulls, c.in_flight at a time if V has asynchronous pulls. `out` holds c.in_flight results.
template <class V>
void pull_all(const DenseCase& c, const V& variable, Walk& walk, std::span<float> out) {
  if constexpr (requires { variable.pull_async(std::uint64_t{0}, out).wait(); }) {
    if (c.in_flight > 1) {
      std::deque<decltype(variable.pull_async(std::uint64_t{0}, out))> pending;
      for (int k = 0; k < c.calls; ++k) {
        if (static_cast<int>(pending.size()) == c.in_flight) {
          pending.front().wait();
          pending.pop_front();
        }
        pending.push_back(variable.pull_async(walk.next_row(), part(out, c, k % c.in_flight)));
      }
      for (auto& pull : pending) pull.wait();
      return;
    }
  }
  for (int k = 0; k < c.calls; ++k) variable.pull(walk.next_row(), part(out, c, 0));
}

struct Arrays {
  Array source;
  Array out;
  Array staging;
  Array table;
};
thread_local Arrays arrays;  // persists between the closures of a worker

bool correct(std::uint64_t first_row, std::span<const float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != pattern(first_row + i / kWidth, i % kWidth)) return false;
  }
  return true;
}

bool pulls_verified(const DenseCase& c, const Variable<float>& variable, std::span<float> out) {
  constexpr int kBlocks = 3;
  DenseCase one = c;
  one.calls = 1;
  Walk walk(c);
  for (int i = 0; i < kBlocks; ++i) {
    Walk same = walk;
    std::fill(out.begin(), out.end(), -1.0f);
    pull_all(one, variable, walk, out);
    if (!correct(same.next_row(), part(out, c, 0))) return false;
  }
  return true;
}

Timings measure_pull(DenseCase c, Variable<float> variable, Counter counter, std::int64_t workers) {
  const auto capacity = static_cast<std::size_t>(c.in_flight) * c.floats();
  const std::span<float> out = arrays.out.get(capacity, true);
  std::span<float> source;
  if (c.with_bound) source = arrays.source.get(c.source_rows * kWidth, c.huge_pages);
  Walk walk(c);
  Walk bound_walk(c);
  Timings timings;
  timings.verified = pulls_verified(c, variable, out);
  take_turns(
      c.warmup, c.samples, StartBarrier(counter, workers), c.with_bound, [] {},
      [&] {
        pull_all(c, variable, walk, out);
        use_memory();
      },
      [&] {
        for (int k = 0; k < c.calls; ++k) {
          std::memcpy(out.data(), source.data() + bound_walk.next_row() * kWidth, c.bytes());
          use_memory();
        }
      },
      timings);
  return timings;
}

/// Compares pulls that return the complete variable with pulls into an array.
Timings measure_returned(DenseCase c, Variable<float> variable, Counter counter, std::int64_t workers) {
  const std::span<float> out = arrays.out.get(c.floats(), true);
  variable.pull(0, out);
  Timings timings;
  timings.verified = variable.pull() == out;
  take_turns(
      c.warmup, c.samples, StartBarrier(counter, workers), true, [] {},
      [&] {
        for (int k = 0; k < c.calls; ++k) {
          const Buffer<float> values = variable.pull();
          use_memory();
        }
      },
      [&] {
        for (int k = 0; k < c.calls; ++k) {
          variable.pull(0, out);
          use_memory();
        }
      },
      timings);
  return timings;
}

/// Integers with a mean near 0, so that sums are exact.
void fill_gradient(std::span<float> gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
  }
}

constexpr int kCheckedPushes = 3;

bool push_for_check(DenseCase c, Variable<float> variable, Counter counter, std::int64_t workers) {
  std::vector<float> gradient(c.floats());
  fill_gradient(gradient);
  StartBarrier(counter, workers).wait();
  for (int i = 0; i < kCheckedPushes; ++i) variable.push_dense(gradient);
  variable.flush();
  return true;
}

bool pushes_verified(const Session& session, const DenseCase& c, const Variable<float>& variable) {
  std::vector<float> expected(c.floats(), 0);
  variable.assign(expected);
  session.on_all_workers<&push_for_check>(c, variable);
  fill_gradient(expected);
  for (float& x : expected) x *= -static_cast<float>(kCheckedPushes * session.workers);
  return variable.pull() == expected;
}

Timings measure_push(DenseCase c, Variable<float> variable, Counter counter, std::int64_t workers) {
  const std::span<float> gradient = arrays.out.get(c.floats(), true);
  fill_gradient(gradient);
  std::span<float> staging;
  std::span<float> table;
  if (c.with_bound) {
    staging = arrays.staging.get(c.floats(), c.huge_pages);
    table = arrays.table.get(c.floats(), c.huge_pages);
  }
  Timings timings;
  timings.verified = true;  // the coordinator compares
  take_turns(
      c.warmup, c.samples, StartBarrier(counter, workers), c.with_bound, [] {},
      [&] {
        for (int k = 0; k < c.calls; ++k) variable.push_dense(gradient);
        variable.flush();
      },
      [&] {
        for (int k = 0; k < c.calls; ++k) {
          std::memcpy(staging.data(), gradient.data(), c.bytes());
          use_memory();
          dense_sgd(table, 1, staging.data());
          use_memory();
        }
      },
      timings);
  return timings;
}

std::vector<DenseCase> dense_cases(const Cluster& cluster, const Options& o, bool with_bound,
                                   std::uint64_t sample_bytes) {
  const std::uint64_t source = o.rows != 0 ? o.rows * kRowBytes : kSourceBytes;
  std::vector<DenseCase> cases;
  for (std::uint64_t bytes = std::max(o.min_bytes, kRowBytes); bytes <= o.max_bytes; bytes *= factor) {
    DenseCase c;
    c.rows = bytes / kRowBytes;
    c.source_rows = std::max(source, o.max_bytes) / kRowBytes;
    c.in_flight = cluster.runtime()->membership().single_host() ? 1 : kInFlightBetweenHosts;
    c.calls = std::max(c.in_flight, static_cast<int>(sample_bytes / c.bytes()));
    c.warmup = o.warmup;
    c.samples = o.iters;
    c.with_bound = with_bound;
    c.huge_pages = o.huge_pages;
    cases.push_back(c);
  }
  return cases;
}

constexpr const char* kPull = "dense pull";
constexpr const char* kPush = "dense push";
constexpr const char* kReturned = "returned pull";

std::string name_of(const std::string& group, const DenseCase& c) {
  return fmt::format("{} bytes={}", group, c.bytes());
}

Result dense_result(const DenseCase& c, const Timings& timings, const Session& session,
                    const std::string& group, const std::string& loop) {
  Result result{name_of(group, c), group, c.bytes(), "bytes", "MB/s"};
  result.verified = timings.verified;
  const double megabytes =
      static_cast<double>(c.bytes()) * c.calls * static_cast<double>(session.workers) / 1e6;
  result = rate_result(std::move(result), megabytes, timings.measured);
  if (!timings.bound.empty()) {
    result.bound = megabytes / median(timings.bound);
    result.bound_name = loop;
  } else {
    use_link_bandwidth(result, session, kDenseBound, c.bytes(), 1);
  }
  return result;
}

/// A pull is a small request and one answer. Pushes are one request each, and a flush is the count that the
/// server returns.
std::vector<TcpCase> tcp_cases(const Cluster& cluster, const Options& options) {
  constexpr std::uint64_t kRequestBytes = 64;
  std::vector<TcpCase> found;
  const auto megabytes = [](const DenseCase& c) { return static_cast<double>(c.bytes()) * c.calls / 1e6; };
  for (const DenseCase& c : dense_cases(cluster, options, false, kSampleBytes)) {
    const TcpExchange exchange{.calls = static_cast<std::uint64_t>(c.calls),
                               .request = kRequestBytes,
                               .answer = c.bytes(),
                               .piece = c.bytes(),
                               .source = c.source_rows * kRowBytes,
                               .in_flight = static_cast<std::uint64_t>(c.in_flight)};
    if (options.wants(name_of(kPull, c))) found.push_back({name_of(kPull, c), exchange, megabytes(c)});
  }
  for (const DenseCase& c : dense_cases(cluster, options, false, kPushSampleBytes)) {
    const TcpExchange exchange{
        .calls = static_cast<std::uint64_t>(c.calls), .request = c.bytes(), .piece = c.bytes()};
    if (options.wants(name_of(kPush, c))) found.push_back({name_of(kPush, c), exchange, megabytes(c)});
  }
  return found;
}

void fill_source(const Variable<float>& variable) {
  constexpr std::uint64_t kBlockRows = 4096;
  std::vector<float> block;
  for (std::uint64_t row = 0; row < variable.rows(); row += kBlockRows) {
    block.resize(std::min(kBlockRows, variable.rows() - row) * kWidth);
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = pattern(row + i / kWidth, i % kWidth);
    variable.assign(block, row);
  }
}

Variable<float> make_variable(const std::string& name, std::uint64_t rows) {
  return {name,
          Shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(kWidth)},
          initializers::zeros(),
          {optimizers::SGD{1.0}}};
}

void measure_all(const Session& session) {
  const Options& options = session.options;
  const bool with_bound = !session.tcp_bound && !session.bounds.has(kDenseBound);
  const std::vector<DenseCase> cases = dense_cases(session.cluster, options, with_bound, kSampleBytes);
  const std::vector<DenseCase> push_cases =
      dense_cases(session.cluster, options, with_bound, kPushSampleBytes);
  if (cases.empty())
    throw Error(
        Code::invalid_argument,
        "--min-bytes, --max-bytes: no size to measure, expected a size between them of at least 1 KiB");
  const Variable<float> source = make_variable("source", cases[0].source_rows);
  fill_source(source);
  session.on_all_workers<&read_once>(source);
  std::vector<Variable<float>> targets;
  std::vector<Timings> pulls(cases.size());
  std::vector<Timings> pushes(cases.size());
  std::vector<Timings> returned(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    targets.push_back(make_variable("target" + std::to_string(cases[i].bytes()), cases[i].rows));
    pulls[i].verified = returned[i].verified = true;
    pushes[i].verified = pushes_verified(session, cases[i], targets[i]);
  }
  for (int repeat = 0; repeat < options.repeat; ++repeat) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (options.wants(name_of(kPull, cases[i])))
        append_slowest(pulls[i], session.on_all_workers<&measure_pull>(cases[i], source));
      if (options.wants(name_of(kPush, push_cases[i])))
        append_slowest(pushes[i], session.on_all_workers<&measure_push>(push_cases[i], targets[i]));
      if (options.wants(name_of(kReturned, cases[i])))
        append_slowest(returned[i], session.on_all_workers<&measure_returned>(cases[i], targets[i]));
    }
  }
  const auto report = [&](const char* group, const DenseCase& c, const Timings& timings, const char* loop) {
    if (options.wants(name_of(group, c))) session.report.add(dense_result(c, timings, session, group, loop));
  };
  for (std::size_t i = 0; i < cases.size(); ++i) report(kPull, cases[i], pulls[i], "memcpy, cold source");
  for (std::size_t i = 0; i < cases.size(); ++i)
    report(kPush, push_cases[i], pushes[i], "memcpy and a pass of SGD in place");
  for (std::size_t i = 0; i < cases.size(); ++i)
    report(kReturned, cases[i], returned[i], "the same pull into an array");
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  using namespace capstan::perf;
  return run(
      argc, argv,
      {.question = "Measures the bandwidth of dense pull and push with SGD, by size, compared with memcpy.",
       .measure = &measure_all,
       .more_flags =
           [](CLI::App& app) {
             app.add_option("--factor", factor, "ratio of one size to the next")->check(CLI::Range(2, 1024));
           },
       .tcp_cases = &tcp_cases});
}
