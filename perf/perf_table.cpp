// perf_table.cpp -- lookups and pushes by key of a dynamic table, in rows per second.
//
// Bounds: the same call by row number on a plain variable of the same ps; for misses, the lookup of keys that
// exist; and a lookup in absl::flat_hash_map followed by a copy of the row, in one thread. Values are
// verified before anything is timed.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#ifdef CAPSTAN_HAVE_ABSL
#include <absl/container/flat_hash_map.h>
#endif

#include "capstan/dynamic_table.hpp"
#include "perf/bench/memory.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/row_case.hpp"
#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

constexpr std::uint64_t kSampleIds = 65536;
constexpr std::uint64_t kNewKeys = 65536;  // per sample of first pushes
constexpr std::uint64_t kBlock = 65536;

/// Keys are spread over all 64-bit numbers; a multiplication by an odd number is a bijection.
std::int64_t key_of(std::uint64_t id) { return static_cast<std::int64_t>(id * 0xD6E8FEB86659FD93U); }

std::vector<std::int64_t> keys_of(std::uint64_t first, std::uint64_t count) {
  std::vector<std::int64_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) keys[i] = key_of(first + i);
  return keys;
}

void fill_pattern(std::span<float> values, std::uint64_t first_row, std::uint64_t width) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = pattern(first_row + i / width, i % width);
}

/// A table and a variable with the same rows: row r of the variable is the row of key_of(r).
struct Pair {
  DynamicTable<float> table;
  Variable<float> plain;
};

Pair create(const std::string& name, const RowCase& c, const Optimizer& optimizer) {
  Pair pair{{name, static_cast<std::int64_t>(c.width), {}, {.optimizer = optimizer}},
            {name + "_plain",
             Shape{static_cast<std::int64_t>(c.rows), static_cast<std::int64_t>(c.width)},
             {},
             {.optimizer = optimizer}}};
  std::vector<float> block;
  for (std::uint64_t row = 0; row < c.rows; row += kBlock) {
    const std::uint64_t rows = std::min(kBlock, c.rows - row);
    block.resize(rows * c.width);
    fill_pattern(block, row, c.width);
    pair.table.assign(keys_of(row, rows), block);
    pair.plain.assign(block, row);
  }
  return pair;
}

/// Returns true if all rows are correct. Looks up all keys, which also maps all pages.
bool all_correct(const DynamicTable<float>& table, std::uint64_t rows, std::uint64_t width) {
  std::vector<float> out;
  std::vector<float> expected;
  for (std::uint64_t row = 0; row < rows; row += kBlock) {
    const std::uint64_t count = std::min(kBlock, rows - row);
    out.resize(count * width);
    expected.resize(count * width);
    table.lookup(keys_of(row, count), std::span(out));
    fill_pattern(expected, row, width);
    if (out != expected) return false;
  }
  return true;
}

/// Ids of a sample and their keys; a missing key belongs to no row.
struct Drawn {
  explicit Drawn(const RowCase& row_case)
      : c(row_case),
        ids(c.sample_ids()),
        keys(c.sample_ids()),
        missing(c.sample_ids()),
        stream(c.draw_ids(static_cast<std::uint64_t>(current_worker_index()))) {}
  void draw() {
    stream.draw(ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      keys[i] = key_of(static_cast<std::uint64_t>(ids[i]));
      missing[i] = key_of(static_cast<std::uint64_t>(ids[i]) + c.rows);
    }
  }
  std::span<const std::int64_t> call(std::span<const std::int64_t> all, int k) const {
    return all.subspan(static_cast<std::size_t>(k) * c.call, c.call);
  }

  RowCase c;
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> keys;
  std::vector<std::int64_t> missing;
  Ids stream;
};

Timings time_lookups(RowCase c, DynamicTable<float> table, Variable<float> plain, bool misses,
                     Counter counter, std::int64_t workers) {
  static thread_local Array memory;
  const std::span<float> out = memory.get(c.call * c.width, true);
  Drawn drawn(c);
  Timings timings;
  timings.verified = all_correct(table, c.rows, c.width);
  std::vector<float> block(kBlock * c.width);
  for (std::uint64_t row = 0; row + kBlock <= c.rows; row += kBlock) plain.pull(row, block);
  const auto hits = [&] {
    for (int k = 0; k < c.calls; ++k) table.lookup(drawn.call(drawn.keys, k), out);
    use_memory();
  };
  const auto look_for_missing = [&] {
    for (int k = 0; k < c.calls; ++k) table.lookup(drawn.call(drawn.missing, k), out);
    use_memory();
  };
  const auto by_number = [&] {
    for (int k = 0; k < c.calls; ++k) plain.lookup(drawn.call(drawn.ids, k), out);
    use_memory();
  };
  const StartBarrier barrier(counter, workers);
  const auto draw = [&] { drawn.draw(); };
  if (misses) {
    timings.bound_name = "keys that exist";
    draw();
    look_for_missing();
    timings.verified =
        timings.verified && std::all_of(out.begin(), out.end(), [](float x) { return x == 0; });
    take_turns(c.warmup, c.samples, barrier, true, draw, look_for_missing, hits, timings);
  } else {
    timings.bound_name = "by row number";
    take_turns(c.warmup, c.samples, barrier, true, draw, hits, by_number, timings);
  }
  return timings;
}

#ifdef CAPSTAN_HAVE_ABSL
Timings time_flat_map(RowCase c, DynamicTable<float> table, Counter counter, std::int64_t workers) {
  static thread_local Array memory;
  static thread_local Array rows;
  const std::span<float> out = memory.get(c.call * c.width, true);
  const std::span<float> values = rows.get(c.rows * c.width, c.huge_pages);
  fill_pattern(values, 0, c.width);
  absl::flat_hash_map<std::int64_t, std::uint32_t> map;
  for (std::uint64_t row = 0; row < c.rows; ++row) map.emplace(key_of(row), static_cast<std::uint32_t>(row));
  Drawn drawn(c);
  const auto hits = [&] {
    for (int k = 0; k < c.calls; ++k) table.lookup(drawn.call(drawn.keys, k), out);
    use_memory();
  };
  const auto find_and_copy = [&] {
    for (int k = 0; k < c.calls; ++k) {
      const auto keys = drawn.call(drawn.keys, k);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto found = map.find(keys[i]);
        if (found == map.end()) continue;
        std::memcpy(out.data() + i * c.width, values.data() + found->second * c.width,
                    c.width * sizeof(float));
      }
    }
    use_memory();
  };
  Timings timings;
  drawn.draw();
  find_and_copy();
  std::vector<float> expected(out.begin(), out.end());
  hits();
  timings.verified = std::equal(out.begin(), out.end(), expected.begin());
  timings.bound_name = "absl::flat_hash_map and copy";
  take_turns(
      c.warmup, c.samples, StartBarrier(counter, workers), true, [&] { drawn.draw(); }, hits, find_and_copy,
      timings);
  return timings;
}
#endif

Timings time_pushes(RowCase c, DynamicTable<float> table, Variable<float> plain, Counter counter,
                    std::int64_t workers) {
  const std::vector<float> gradient(c.call * c.width, 1);
  Drawn drawn(c);
  const auto push = [&](const auto& to, const std::vector<std::int64_t>& ids) {
    for (int k = 0; k < c.calls; ++k) to.push(drawn.call(ids, k), gradient);
    to.flush();
  };
  int draws = 0;
  const auto draw_for_both = [&] {  // both get the same pushes, so that they have the same rows
    if (draws++ % 2 == 0) drawn.draw();
  };
  Timings timings;
  timings.verified = true;  // the coordinator compares both
  timings.bound_name = "by row number";
  take_turns(
      c.warmup, c.samples, StartBarrier(counter, workers), true, draw_for_both,
      [&] { push(table, drawn.keys); }, [&] { push(plain, drawn.ids); }, timings);
  return timings;
}

Timings time_first_pushes(RowCase c, DynamicTable<float> table, Counter counter, std::int64_t workers) {
  const std::vector<float> gradient(c.call * c.width, 1);
  const auto worker = static_cast<std::uint64_t>(current_worker_index());
  std::uint64_t first = (worker + 1) << 40;
  std::vector<std::int64_t> keys;
  const auto push = [&] {
    for (std::uint64_t at = 0; at < keys.size(); at += c.call)
      table.push(std::span(keys).subspan(at, c.call), gradient);
    table.flush();
  };
  const auto draw = [&] {
    if (!keys.empty()) table.erase(keys);
    keys = keys_of(first, kNewKeys);
    first += kNewKeys;
  };
  Timings timings;
  take_turns(c.warmup, c.samples, StartBarrier(counter, workers), false, draw, push, push, timings);
  const Rows<float> rows = table.lookup(keys);
  timings.verified =
      std::all_of(rows.values.begin(), rows.values.end(), [](float value) { return value == -1; });
  table.erase(keys);
  return timings;
}

/// Pushes new keys to a full table, which evicts as many, and as many new keys to a table that has room.
Timings time_evictions(RowCase c, DynamicTable<float> full, DynamicTable<float> roomy, Counter counter,
                       std::int64_t workers) {
  const std::vector<float> gradient(c.call * c.width, 1);
  // Continues after the keys of earlier cases, some of which the full table still has.
  static thread_local std::uint64_t drawn = 0;
  const std::uint64_t first = (static_cast<std::uint64_t>(current_worker_index()) + 1) << 40;
  std::vector<std::int64_t> keys;
  const auto push_to = [&](const DynamicTable<float>& table) {
    for (std::uint64_t at = 0; at < keys.size(); at += c.call)
      table.push(std::span(keys).subspan(at, c.call), gradient);
    table.flush();
  };
  const auto draw = [&] {
    if (!keys.empty()) roomy.erase(keys);
    keys = keys_of(first + drawn, kNewKeys);
    drawn += kNewKeys;
  };
  Timings timings;
  timings.bound_name = "first push to a table that has room";
  const std::uint64_t fills = full.statistics().max_keys / kNewKeys + 2;
  for (std::uint64_t i = 0; i < fills && full.statistics().evicted == 0; ++i) {
    draw();
    push_to(full);
  }
  take_turns(
      c.warmup, c.samples, StartBarrier(counter, workers), true, draw, [&] { push_to(full); },
      [&] { push_to(roomy); }, timings);
  draw();
  push_to(full);
  const TableStatistics now = full.statistics();
  const std::span<const std::int64_t> newest = std::span(keys).last(c.call);
  const Rows<float> rows = full.lookup(newest);
  timings.verified = now.evicted > 0 && now.refused == 0 && now.keys < now.max_keys + workers * c.call * 2 &&
                     std::count(rows.values.begin(), rows.values.end(), -1.F) * 10 >
                         static_cast<std::ptrdiff_t>(rows.values.size()) * 9;
  return timings;
}

/// Pushes new keys, `call` at a time, until the table has `rows`; returns the seconds of each push.
std::string growth_name(std::uint64_t dim) { return fmt::format("table growth dim={}, longest push", dim); }

std::vector<double> time_growth(RowCase c, DynamicTable<float> table, Counter counter, std::int64_t workers) {
  const StartBarrier barrier(counter, workers);
  const std::vector<float> gradient(c.call * c.width, 1);
  std::vector<double> seconds;
  for (std::uint64_t first = 0; first < c.rows; first += c.call) {
    const std::vector<std::int64_t> keys = keys_of(first, c.call);
    seconds.push_back(seconds_of([&] {
      table.push(keys, gradient);
      table.flush();
    }));
  }
  return seconds;
}

/// Returns true if the table has the rows of the variable. Pushes of several workers may be applied to the
/// table and to the variable in different orders, so sums of optimizers may be rounded differently.
bool same_rows(const Pair& pair, const RowCase& c) {
  std::vector<float> plain;
  for (std::uint64_t row = 0; row < c.rows; row += kBlock) {
    const std::uint64_t rows = std::min(kBlock, c.rows - row);
    plain.resize(rows * c.width);
    pair.plain.pull(row, plain);
    const Rows<float> found = pair.table.lookup(keys_of(row, rows));
    const bool same = std::equal(plain.begin(), plain.end(), found.values.begin(), [](float a, float b) {
      return std::abs(a - b) <= 1e-4F * std::max(1.F, std::abs(a));
    });
    if (!same) return false;
  }
  return true;
}

void add_memory(const Session& session, const RowCase& c, const DynamicTable<float>& table) {
  const TableStatistics now = table.statistics();
  const double keys = static_cast<double>(now.keys);
  const double load =
      keys / (static_cast<double>(now.index_bytes) / 64 * 5);  // five entries a line of 64 bytes
  Result result{fmt::format("table memory dim={}", c.width), "table memory", c.width, "dim", "bytes/key"};
  result.less_is_better = true;
  result.verified = now.keys == c.rows;
  // Memory of a key in addition to its row: index entry, key and state.
  result.median = result.p99 = static_cast<double>(now.index_bytes) / keys + 12;
  result.bound = 32;
  result.bound_name = fmt::format("target; load {:.2f}", load);
  session.report.add(result);
}

/// Measures the longest push of new keys while a table grows to 2 GiB of rows, or to `--rows`. Each repeat
/// fills a new table with the same keys, and the shortest time of each push counts: interruptions by other
/// processes do not repeat, growths do.
void add_growth(const Session& session, std::uint64_t dim) {
  constexpr std::uint64_t kBytes = std::uint64_t{2} << 30;
  const std::uint64_t given = session.options.rows;
  const std::uint64_t rows = given != 0 ? given : kBytes / (dim * sizeof(float));
  RowCase c;
  c.width = dim;
  c.call = std::min<std::uint64_t>(8192, rows);
  c.rows = rows / c.call * c.call;
  std::vector<double> least;
  Result result{growth_name(dim), "table growth", dim, "dim", "ms"};
  result.less_is_better = result.verified = true;
  for (int repeat = 0; repeat < session.options.repeat; ++repeat) {
    const DynamicTable<float> table(fmt::format("growing{}_{}", dim, repeat), static_cast<std::int64_t>(dim),
                                    {}, {.optimizer = optimizers::SGD{1}, .max_keys = 2 * c.rows});
    const auto seconds =
        session.coordinator.schedule<&time_growth>(c, table, session.counter, std::int64_t{1}).fetch();
    if (least.empty()) least = seconds;
    for (std::size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], seconds[i]);
    const TableStatistics now = table.statistics();
    const Rows<float> last = table.lookup(keys_of(c.rows - c.call, c.call));
    result.verified = result.verified && now.keys == c.rows && now.refused == 0 &&
                      std::ranges::all_of(last.values, [](float x) { return x == -1; });
  }
  result.median = result.p99 = 1e3 * std::ranges::max(least);
  result.bound = 20;
  result.bound_name = fmt::format("target; median push {:.2f} ms", 1e3 * median(least));
  session.report.add(result);
}

/// Returns cases with 5/3 of the rows of other benchmarks, so that the load of the index is 0.67.
std::vector<RowCase> cases_of(const Options& options, const std::string& what) {
  std::vector<RowCase> cases = row_cases(options, what, kSampleIds, 1);
  for (RowCase& c : cases) c.rows = c.rows * 5 / 3;
  return cases;
}

void measure_all(const Session& session) {
  Options options = session.options;
  const auto add = [&](const RowCase& c, const Timings& timings) {
    session.report.add(row_result(c, timings, session, "lookup or push"));
  };
  for (const std::uint64_t dim : session.options.dims) {
    options.dims = {dim};
    const std::vector<RowCase> lookups = cases_of(options, "table lookup");
    RowCase size;
    size.rows = session.options.rows_of(dim) * 5 / 3;
    size.width = dim;
    const Pair pair = create(fmt::format("table{}", dim), size, optimizers::SGD{1});
    add_memory(session, size, pair.table);
    const auto repeated = [&](const RowCase& c, const auto& time) {
      Timings timings;
      timings.verified = true;
      for (int repeat = 0; repeat < session.options.repeat; ++repeat)
        append_slowest(timings, time(for_repeat(c, repeat)));
      add(c, timings);
    };
    for (const RowCase& c : lookups) {
      repeated(c, [&](const RowCase& one) {
        return session.on_all_workers<&time_lookups>(one, pair.table, pair.plain, false);
      });
    }
#ifdef CAPSTAN_HAVE_ABSL
    for (const RowCase& c : cases_of(options, "table lookup, flat map"))
      repeated(c,
               [&](const RowCase& one) { return session.on_all_workers<&time_flat_map>(one, pair.table); });
#endif
    for (const RowCase& c : cases_of(options, "table misses")) {
      repeated(c, [&](const RowCase& one) {
        return session.on_all_workers<&time_lookups>(one, pair.table, pair.plain, true);
      });
    }
    for (const RowCase& c : cases_of(options, "table first push")) {
      if (c.ids != "uniform" || kNewKeys % c.call != 0) continue;  // each key is pushed once
      RowCase once = c;
      once.calls = static_cast<int>(kNewKeys / c.call);
      repeated(once, [&](const RowCase& one) {
        return session.on_all_workers<&time_first_pushes>(one, pair.table);
      });
    }
    const DynamicTable<float> full(fmt::format("full{}", dim), static_cast<std::int64_t>(dim), {},
                                   {.optimizer = optimizers::SGD{1},
                                    .max_keys = size.rows / 4,
                                    .when_full = WhenFull::evict_least_recent});
    for (const RowCase& c : cases_of(options, "table eviction")) {
      if (c.ids != "uniform" || kNewKeys % c.call != 0) continue;  // each key is pushed once
      RowCase once = c;
      once.calls = static_cast<int>(kNewKeys / c.call);
      repeated(once, [&](const RowCase& one) {
        return session.on_all_workers<&time_evictions>(one, full, pair.table);
      });
    }
    if (session.options.wants(growth_name(dim))) add_growth(session, dim);
    const Pair adagrad =
        create(fmt::format("adagrad{}", dim), size, optimizers::Adagrad{.learning_rate = 0.01});
    for (const auto& [name, one] : {std::pair("SGD", &pair), std::pair("Adagrad", &adagrad)}) {
      for (const RowCase& c : cases_of(options, fmt::format("table push {}", name))) {
        Timings timings;
        timings.verified = true;
        for (int repeat = 0; repeat < session.options.repeat; ++repeat)
          append_slowest(timings,
                         session.on_all_workers<&time_pushes>(for_repeat(c, repeat), one->table, one->plain));
        timings.verified = same_rows(*one, size);
        add(c, timings);
      }
    }
  }
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  using namespace capstan::perf;
  return run(argc, argv,
             {.question = "Measures lookups and pushes of DynamicTable, compared with a plain variable and a "
                          "hash map in one process.",
              .measure = &measure_all});
}
