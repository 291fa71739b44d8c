// perf_lookup.cpp -- lookup rate of a worker, in rows per second.
//
// Bound: a prefetching loop over the same rows of a table in this process, or between hosts a raw TCP stream;
// for returned rows, bfloat16, int8, int8_rows and cached rows, the same lookup of float32 into an array.
// Rival: MPI_Get between the same ranks, or between hosts the bandwidth from --bounds. Values are verified
// before anything is timed. The prefetch cases show how much of a lookup a computation hides.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capstan/hot_rows.hpp"
#include "perf/bench/arithmetic.hpp"
#include "perf/bench/memory.hpp"
#include "perf/bench/mpi_ranks.hpp"
#include "perf/bench/mpi_table.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/row_case.hpp"
#include "perf/bench/statistics.hpp"
#include "transport/fabric.hpp"

namespace capstan::perf {
namespace {

constexpr std::uint64_t kSampleIds = 65536;

/// Fills `values` with rows [first_row, ...) of a table of `width` columns.
void fill_pattern(std::span<float> values, std::uint64_t first_row, std::uint64_t width) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = pattern(first_row + i / width, i % width);
}

void fill_variable(const Variable<float>& variable) {
  const std::uint64_t block_rows = std::max<std::uint64_t>(1, (1 << 20) / variable.width());
  std::vector<float> block;
  for (std::uint64_t row = 0; row < variable.rows(); row += block_rows) {
    block.resize(std::min(block_rows, variable.rows() - row) * variable.width());
    fill_pattern(block, row, variable.width());
    variable.assign(block, row);
  }
}

bool correct(std::span<const std::int64_t> ids, std::span<const float> out, std::uint64_t width) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::uint64_t j = 0; j < width; ++j) {
      if (out[i * width + j] != pattern(static_cast<std::uint64_t>(ids[i]), j)) return false;
    }
  }
  return true;
}

/// Arrays of a worker; persist between its closures.
struct Arrays {
  Array table;
  Array out;
  std::uint64_t filled_width = 0;
  std::uint64_t filled_rows = 0;

  std::span<const float> filled(const RowCase& c) {
    const std::span<float> values = table.get(c.rows * c.width, c.huge_pages);
    if (filled_width != c.width || filled_rows != c.rows) fill_pattern(values, 0, c.width);
    filled_width = c.width;
    filled_rows = c.rows;
    return values;
  }
};

Timings measure(RowCase c, Variable<float> variable, Counter counter, std::int64_t workers) {
  static thread_local Arrays arrays;
  const std::span<float> out = arrays.out.get(c.call * c.width, true);
  const std::span<const float> table = c.with_bound ? arrays.filled(c) : std::span<const float>();
  std::vector<std::int64_t> ids(c.sample_ids());
  Ids stream = c.draw_ids(static_cast<std::uint64_t>(current_worker_index()));
  int ahead = kPrefetchDistances[0];
  const ReadMode mode = c.consistent ? ReadMode::consistent : ReadMode::relaxed;

  const auto one_call = [&](int k) {
    return std::span<const std::int64_t>(ids).subspan(static_cast<std::size_t>(k) * c.call, c.call);
  };
  const auto lookup = [&] {
    for (int k = 0; k < c.calls; ++k) variable.lookup(one_call(k), out, mode);
    use_memory();
  };
  const auto loop = [&] {
    for (int k = 0; k < c.calls; ++k) gather(table.data(), one_call(k), c.width, ahead, out.data());
    use_memory();
  };
  const auto draw = [&] { stream.draw(ids); };
  const auto verified = [&](const auto& work) {
    draw();
    ids[0] = 0;
    ids.back() = static_cast<std::int64_t>(c.rows - 1);
    std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
    work();
    return correct(one_call(c.calls - 1), out, c.width);
  };

  Timings timings;
  timings.verified = verified(lookup) && (!c.with_bound || verified(loop));
  compare_with_loop(c, StartBarrier(counter, workers), ahead, draw, lookup, loop, timings);
  return timings;
}

enum class Form : std::uint8_t { returned, bfloat16, int8, hot };

/// Returns true if a lookup of this form may return these values for a row.
bool may_return(Form form, std::uint64_t row, std::span<const float> found) {
  float low = pattern(row, 0);
  float high = low;
  for (std::size_t j = 1; j < found.size(); ++j) {
    low = std::min(low, pattern(row, j));
    high = std::max(high, pattern(row, j));
  }
  // Half a step, and the rounding of its arithmetic.
  const float rounding = std::max(std::abs(low), std::abs(high)) * std::numeric_limits<float>::epsilon();
  const float bound = (high - low) / 510 * 1.001F + rounding;
  for (std::size_t j = 0; j < found.size(); ++j) {
    const float exact = pattern(row, j);
    const bool is_bfloat16 = form == Form::bfloat16 && found[j] == static_cast<float>(bfloat16(exact));
    const bool is_int8 = form == Form::int8 && std::abs(found[j] - exact) <= bound;
    if (found[j] != exact && !is_bfloat16 && !is_int8) return false;
  }
  return true;
}

/// Compares lookups that return their rows, lookups of `variable` with bfloat16 or int8 (messages or
/// stored rows), or lookups through a cache (HotRowsOnHost) with lookups of `plain` into an array.
Timings measure_form(RowCase c, Form form, Variable<float> variable, Variable<float> plain, Counter counter,
                     std::int64_t workers) {
  static thread_local Array array;
  const std::span<float> out = array.get(c.call * c.width, true);
  std::vector<std::int64_t> ids(c.sample_ids());
  Ids stream = c.draw_ids(static_cast<std::uint64_t>(current_worker_index()));
  const auto one_call = [&](int k) {
    return std::span<const std::int64_t>(ids).subspan(static_cast<std::size_t>(k) * c.call, c.call);
  };
  const auto into_array = [&](const Variable<float>& from) {
    for (int k = 0; k < c.calls; ++k) from.lookup(one_call(k), out);
    use_memory();
  };
  HotRowsOnHost<float> hot(variable);
  const auto measured = [&] {
    if (form == Form::bfloat16 || form == Form::int8) return into_array(variable);
    for (int k = 0; k < c.calls; ++k) {
      if (form == Form::hot) {
        hot.lookup(one_call(k), out);
        continue;
      }
      const Rows<float> rows = variable.lookup(one_call(k));
      if (k + 1 == c.calls) std::copy(rows.values.begin(), rows.values.end(), out.begin());
    }
    use_memory();
  };
  Timings timings;
  stream.draw(ids);
  measured();
  const std::span<const std::int64_t> last = one_call(c.calls - 1);
  timings.verified = true;
  for (std::size_t i = 0; i < last.size() && timings.verified; ++i) {
    const std::span<const float> row = out.subspan(i * c.width, c.width);
    timings.verified = may_return(form, static_cast<std::uint64_t>(last[i]), row);
  }
  take_turns(
      c.warmup, c.samples, StartBarrier(counter, workers), true, [&] { stream.draw(ids); }, measured,
      [&] { into_array(plain); }, timings);
  return timings;
}

void compare_form(const Session& session, RowTables& tables, Form form, const std::string& group,
                  const VariableOptions& options) {
  RowTables of_form(&fill_variable, group.substr(0, group.find(' ')));
  for (const RowCase& c : row_cases(session.options, group, kSampleIds, 1)) {
    const Variable<float>& plain = tables.get(c.rows, c.width, {});
    const bool is_narrow = form == Form::bfloat16 || form == Form::int8;
    const Variable<float>& variable = is_narrow ? of_form.get(c.rows, c.width, options) : plain;
    session.on_all_workers<&read_once>(variable);
    Timings timings;
    timings.verified = true;
    for (int repeat = 0; repeat < session.options.repeat; ++repeat) {
      append_slowest(timings,
                     session.on_all_workers<&measure_form>(for_repeat(c, repeat), form, variable, plain));
    }
    session.report.add(row_result(c, timings, session, "the same lookup of float32 into an array"));
  }
}

constexpr std::chrono::milliseconds kPrefetchCompute{1};

/// Samples of a lookup alone, of the computation alone, and of a step: the computation during a lookup.
struct PrefetchTimings {
  bool verified = false;
  std::vector<double> lookup;
  std::vector<double> compute;
  std::vector<double> step;
};

/// With `sleeps`, the thread sleeps instead, as while a GPU computes.
PrefetchTimings measure_prefetch(RowCase c, bool sleeps, Variable<float> variable, Counter counter,
                                 std::int64_t workers) {
  static thread_local Array array;
  const std::span<float> out = array.get(c.call * c.width, true);
  std::vector<std::int64_t> ids(c.call);
  Ids stream = c.draw_ids(static_cast<std::uint64_t>(current_worker_index()));
  Arithmetic arithmetic(std::chrono::duration<double>(kPrefetchCompute).count());
  const auto compute = [&] { sleeps ? std::this_thread::sleep_for(kPrefetchCompute) : arithmetic.run(); };
  const StartBarrier barrier(counter, workers);
  PrefetchTimings timings;
  timings.verified = true;
  const auto time = [&](std::vector<double>& into, int sample, const auto& work) {
    stream.draw(ids);
    barrier.wait();
    const double seconds = seconds_of(work);
    if (sample >= 0) into.push_back(seconds);
  };
  for (int sample = -c.warmup; sample < c.samples; ++sample) {
    time(timings.lookup, sample, [&] { variable.lookup_async(ids, out).wait(); });
    time(timings.compute, sample, compute);
    std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
    time(timings.step, sample, [&] {
      Pending rows = variable.lookup_async(ids, out);
      compute();
      rows.wait();
    });
    timings.verified = timings.verified && correct(ids, out, c.width);
  }
  return timings;
}

/// Reports the times in microseconds, and the share of a lookup by which a step is shorter than the lookup
/// and the computation, one after the other.
void report_prefetch(const Session& session, const RowCase& c, const PrefetchTimings& timings) {
  const auto of = [&](const char* what, const char* unit) {
    Result result;
    result.name = c.name + " " + what;
    result.group = c.group + " " + what;
    result.size = c.call;
    result.size_unit = "ids a call";
    result.unit = unit;
    result.verified = timings.verified;
    return result;
  };
  const double lookup = median(timings.lookup);
  const double compute = median(timings.compute);
  const auto hidden = [&](double step) { return std::max(0.0, (lookup + compute - step) / lookup); };
  session.report.add(time_result(of("lookup", "us"), 1e6, timings.lookup));
  session.report.add(time_result(of("compute", "us"), 1e6, timings.compute));
  Result step = time_result(of("step", "us"), 1e6, timings.step);
  step.bound = 1e6 * std::max(lookup, compute);
  step.bound_name = "the longer of lookup and compute";
  session.report.add(std::move(step));
  Result share = of("hidden", "of the lookup");
  share.median = hidden(median(timings.step));
  share.p99 = hidden(p99(timings.step));
  share.bound = std::min(1.0, compute / lookup);
  share.bound_name = "the share that the computation is long enough for";
  session.report.add(std::move(share));
}

/// Compares steps that look up rows in advance with lookups and computation alone, for one size.
void compare_prefetch(const Session& session, RowTables& tables, bool sleeps) {
  Options options = session.options;
  const auto keep_middle = [](auto& values) { values = {values[values.size() / 2]}; };
  keep_middle(options.dims);
  keep_middle(options.call_ids);
  options.ids.resize(1);
  for (const RowCase& c : row_cases(options, sleeps ? "prefetch sleeping" : "prefetch computing", 1, 1)) {
    const Variable<float>& variable = tables.get(c.rows, c.width, {});
    session.on_all_workers<&read_once>(variable);
    PrefetchTimings all;
    all.verified = true;
    for (int repeat = 0; repeat < options.repeat; ++repeat) {
      const auto workers = session.on_all_workers<&measure_prefetch>(for_repeat(c, repeat), sleeps, variable);
      for (const auto field : {&PrefetchTimings::lookup, &PrefetchTimings::compute, &PrefetchTimings::step}) {
        std::vector<std::vector<double>> samples;
        for (const PrefetchTimings& worker : workers) samples.push_back(worker.*field);
        const std::vector<double> longest = slowest(samples);
        (all.*field).insert((all.*field).end(), longest.begin(), longest.end());
      }
      for (const PrefetchTimings& worker : workers) all.verified = all.verified && worker.verified;
    }
    report_prefetch(session, c, all);
  }
}

/// Returns all sizes with relaxed reads, the default, and one row size with consistent reads.
std::vector<RowCase> all_cases(Options options) {
  std::vector<RowCase> cases = row_cases(options, "lookup", kSampleIds, 1);
  options.dims = {options.dims[options.dims.size() / 2]};
  for (RowCase& c : row_cases(options, "lookup consistent", kSampleIds, 1)) {
    c.consistent = true;
    cases.push_back(c);
  }
  return cases;
}

void measure_all(const Session& session) {
  std::vector<RowCase> cases = all_cases(session.options);
  std::vector<Timings> timings(cases.size());
  RowTables tables(&fill_variable);
  for (int repeat = 0; repeat < session.options.repeat; ++repeat) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      RowCase& c = cases[i];
      c.with_bound = loop_bounds_rows(session);
      const Variable<float>& variable = tables.get(c.rows, c.width, {});
      if (repeat == 0) {
        session.on_all_workers<&read_once>(variable);
        timings[i].verified = true;
      }
      append_slowest(timings[i], session.on_all_workers<&measure>(for_repeat(c, repeat), variable));
    }
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    session.report.add(row_result(cases[i], timings[i], session, "gather loop in one process"));
  }
  compare_form(session, tables, Form::returned, "returned lookup", {});
  compare_form(session, tables, Form::hot, "hot lookup", {});
  compare_form(session, tables, Form::bfloat16, "bfloat16 lookup", {.communication_dtype = DType::bfloat16});
  compare_form(session, tables, Form::int8, "int8 lookup", {.int8_lookups = true});
  compare_form(session, tables, Form::int8, "int8_rows lookup", {.int8_rows = true});
  compare_prefetch(session, tables, /*sleeps=*/false);
  compare_prefetch(session, tables, /*sleeps=*/true);
}

/// A call is one request with 32-bit row numbers, and one answer in pieces.
std::vector<TcpCase> tcp_cases(const Cluster&, const Options& options) {
  std::vector<TcpCase> found;
  for (const RowCase& c : all_cases(options)) {
    const TcpExchange exchange{.calls = static_cast<std::uint64_t>(c.calls),
                               .request = c.call * sizeof(std::uint32_t),
                               .answer = c.call * c.width * sizeof(float),
                               .piece = transport::kPieceBytes};
    found.push_back({c.name, exchange, static_cast<double>(c.sample_ids())});
  }
  return found;
}

/// Returns the samples of the rival for one case, in seconds. Called on a worker.
template <class Get>
std::vector<double> time_gets(const RowCase& c, const MpiRanks& ranks, std::span<float> out, bool& verified,
                              Get&& get) {
  std::vector<std::int64_t> ids(c.sample_ids());
  Ids stream = c.draw_ids(static_cast<std::uint64_t>(ranks.worker_index()));
  const auto one_call = [&](int k) {
    return std::span<const std::int64_t>(ids).subspan(static_cast<std::size_t>(k) * c.call, c.call);
  };
  std::vector<double> seconds;
  for (int sample = -c.warmup - 1; sample < c.samples; ++sample) {
    stream.draw(ids);
    MPI_Barrier(ranks.worker_comm());
    const double time = seconds_of([&] {
      for (int k = 0; k < c.calls; ++k) get(one_call(k), out.data());
      use_memory();
    });
    if (sample < -c.warmup) verified = verified && correct(one_call(c.calls - 1), out, c.width);
    if (sample >= 0) seconds.push_back(time);
  }
  return seconds;
}

void rival(const MpiRanks& ranks, const Options& options, Report& report) {
  Array out_memory;
  std::uint64_t largest = 0;
  for (const std::uint64_t dim : options.dims) largest = std::max(largest, options.rows_of(dim) * dim);
  MpiTable table(ranks, largest);
  for (const RowCase& c : row_cases(options, "lookup", kSampleIds, 1)) {
    if (table.width() != c.width) {
      table.set_shape(c.rows, c.width);
      fill_pattern(table.local_rows(), table.first_row(), c.width);
      table.sync();
      ranks.barrier();
      if (ranks.role() == Role::worker) table.read_once();
      ranks.barrier();
    }
    const std::span<float> out = out_memory.get(c.call * c.width, true);
    const auto compare = [&](const char* name, const auto& get) {
      bool verified = true;
      std::vector<double> seconds;
      if (ranks.role() == Role::worker) seconds = time_gets(c, ranks, out, verified, get);
      seconds = ranks.slowest(seconds, c.samples);
      if (!ranks.true_on_all(verified) || ranks.rank() != 0) return;
      const double rows = static_cast<double>(c.sample_ids() * ranks.workers().size());
      report.set_better_rival(c.name, rows / median(seconds), name);
    };
    compare("MPI_Get, one per row",
            [&](std::span<const std::int64_t> ids, float* to) { table.get_rows(ids, to); });
    if (!table.one_ps()) continue;
    compare("MPI_Get of an indexed datatype",
            [&](std::span<const std::int64_t> ids, float* to) { table.get_indexed(ids, to); });
  }
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  using namespace capstan::perf;
  return run(
      argc, argv,
      {.question =
           "Measures rows per second of Variable::lookup, compared with a plain gather loop and MPI_Get.",
       .measure = &measure_all,
       .rival = &rival,
       .tcp_cases = &tcp_cases});
}
