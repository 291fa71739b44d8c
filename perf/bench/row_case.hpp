// row_case.hpp -- cases of lookup and push: row size, ids per call, distribution of the ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "capstan/variable.hpp"
#include "perf/bench/ids.hpp"
#include "perf/bench/options.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/row_loops.hpp"
#include "perf/bench/timing.hpp"

namespace capstan::perf {

/// One case, serialized to the workers.
struct RowCase {
  std::string name;
  std::string group;
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  std::uint64_t call = 0;  // ids per call
  std::string ids;
  double zipf_exponent = 0;
  std::uint64_t seed = 0;
  int warmup = 0;
  int samples = 0;
  int calls = 1;            // calls per sample
  bool consistent = false;  // reads never see a partial push
  bool with_bound = true;
  bool huge_pages = true;
  bool two_threads = false;  // the bound of a push is TwoThreadSgd

  std::uint64_t sample_ids() const { return call * static_cast<std::uint64_t>(calls); }
  /// Returns a stream of ids, which depends on the number `stream` of a worker and on the seed of a repeat.
  Ids draw_ids(std::uint64_t stream) const;
};

/// Returns all combinations of row size, call size and distribution. A sample has about `sample_ids` ids, but
/// at least `min_calls` calls.
std::vector<RowCase> row_cases(const Options& options, const std::string& what, std::uint64_t sample_ids,
                               int min_calls);

/// Returns the case with the seed of repeat `repeat`, so that each repeat has other ids.
RowCase for_repeat(RowCase row_case, int repeat);

/// Returns true if the bound of rows is a plain loop in the worker's process, not a network.
bool loop_bounds_rows(const Session& session);

/// Returns the result of a case. Its bound is the plain loop. If the loop was not run, the bandwidth from
/// --bounds divided by the bytes of a row is the bound, or the rival if a raw TCP stream is the bound.
Result row_result(const RowCase& row_case, const Timings& timings, const Session& session,
                  const std::string& loop);

/// Name in --bounds of the bandwidth for rows between hosts, measured by perf/run.
inline constexpr const char* kRowBound = "row_bandwidth";

/// Sets the bound, or the rival, of `result` to curve `name` of --bounds at `size`, times `scale`.
void use_link_bandwidth(Result& result, const Session& session, const char* name, std::uint64_t size,
                        double scale);

/// Reads the complete variable once, since the first access to each page of a ps's memory is slow. For
/// Session::on_all_workers.
bool read_once(Variable<float> variable, Counter counter, std::int64_t workers);

/// One variable per size, created on first use; names begin with `name`.
class RowTables {
 public:
  using Fill = void (*)(const Variable<float>&);
  explicit RowTables(Fill fill, std::string name = "table") : fill_(fill), name_(std::move(name)) {}
  const Variable<float>& get(std::uint64_t rows, std::uint64_t width, const VariableOptions& options);

 private:
  Fill fill_;
  std::string name_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Variable<float>> tables_;
};

/// Returns the fastest prefetch distance; `seconds(distance)` runs the loop once with new ids.
template <class Seconds>
int best_distance(Seconds&& seconds) {
  constexpr int kTries = 3;
  int best = kPrefetchDistances[0];
  double least = 0;
  for (const int distance : kPrefetchDistances) {
    double time = seconds(distance);
    for (int i = 1; i < kTries; ++i) time = std::min(time, seconds(distance));
    if (distance == kPrefetchDistances[0] || time < least) {
      least = time;
      best = distance;
    }
  }
  return best;
}

/// Times `work` and `loop` alternately, each on new ids from `draw`. Sets `ahead`, the distance in rows at
/// which the loop prefetches, to the fastest one.
template <class Draw, class Work, class Loop>
void compare_with_loop(const RowCase& c, const StartBarrier& barrier, int& ahead, const Draw& draw,
                       const Work& work, const Loop& loop, Timings& timings) {
  if (c.with_bound) {
    ahead = best_distance([&](int distance) {
      draw();
      ahead = distance;
      return seconds_of(loop);
    });
    timings.bound_name = std::to_string(ahead) + " rows ahead";
  }
  take_turns(c.warmup, c.samples, barrier, c.with_bound, draw, work, loop, timings);
}

/// Returns the value of a table's element: an integer below 2^23, which a float represents exactly.
inline float pattern(std::uint64_t row, std::uint64_t column) {
  return static_cast<float>(static_cast<std::uint32_t>(row * 2654435761u + column * 40503u) >> 9);
}

}  // namespace capstan::perf
