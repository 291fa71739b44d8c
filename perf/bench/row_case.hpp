// row_case.hpp -- the cases of lookup and push: row size, ids a call, how ids are drawn.
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

/// One case, as it travels to the workers.
struct RowCase {
  std::string name;
  std::string group;
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  std::uint64_t call = 0;  // ids a call
  std::string ids;
  double zipf_exponent = 0;
  std::uint64_t seed = 0;
  int warmup = 0;
  int samples = 0;
  int calls = 1;            // calls a sample
  bool consistent = false;  // reads never see half of a push
  bool with_bound = true;
  bool huge_pages = true;

  std::uint64_t sample_ids() const { return call * static_cast<std::uint64_t>(calls); }
  /// A stream of ids of its own for each worker and repeat.
  Ids draw_ids(std::uint64_t stream) const;
};

/// Every dim with every size of call and way to draw. A sample has about `sample_ids` ids, but at least
/// `min_calls` calls.
std::vector<RowCase> row_cases(const Options& options, const std::string& what, std::uint64_t sample_ids,
                               int min_calls);

/// The case's seed in repeat `repeat`, so that no repeat sees the ids of another.
RowCase for_repeat(RowCase row_case, int repeat);

/// The result of a case, its bound the plain loop's, or else a bandwidth of --bounds over the bytes of the
/// rows.
Result row_result(const RowCase& row_case, const Timings& timings, const Session& session,
                  const std::string& loop);

/// Rows travel as bytes between hosts: then the bound is what perf/run has measured.
inline constexpr const char* kRowBound = "row_bandwidth";

/// Reads all of a variable once: the first access to a page of a ps's memory is slow, and only the first. A
/// function for Session::on_all_workers.
bool read_once(Variable<float> variable, Counter counter, std::int64_t workers);

/// One variable a size, made when first asked for.
class RowTables {
 public:
  using Fill = void (*)(const Variable<float>&);
  explicit RowTables(Fill fill) : fill_(fill) {}
  const Variable<float>& get(std::uint64_t rows, std::uint64_t width, const VariableOptions& options);

 private:
  Fill fill_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Variable<float>> tables_;
};

/// The distance with the least time; `seconds(distance)` runs the loop once on ids of its own.
template <class Seconds>
int best_distance(Seconds&& seconds) {
  constexpr int kTries = 3;
  int best = kDistances[0];
  double least = 0;
  for (const int distance : kDistances) {
    double time = seconds(distance);
    for (int i = 1; i < kTries; ++i) time = std::min(time, seconds(distance));
    if (distance == kDistances[0] || time < least) {
      least = time;
      best = distance;
    }
  }
  return best;
}

/// Times `figure` and `loop` in turn, each on ids of its own that `draw` draws, the loop fetching `ahead`
/// rows ahead: what serves it best.
template <class Draw, class Figure, class Loop>
void beside_loop(const RowCase& c, const Together& together, int& ahead, const Draw& draw,
                 const Figure& figure, const Loop& loop, Timings& timings) {
  if (c.with_bound) {
    ahead = best_distance([&](int distance) {
      draw();
      ahead = distance;
      return seconds_of(loop);
    });
    timings.bound_name = std::to_string(ahead) + " rows ahead";
  }
  take_turns(c.warmup, c.samples, together, c.with_bound, draw, figure, loop, timings);
}

/// The value of a table's element: a whole number below 2^23, so a float holds it exactly.
inline float pattern(std::uint64_t row, std::uint64_t column) {
  return static_cast<float>(static_cast<std::uint32_t>(row * 2654435761u + column * 40503u) >> 9);
}

}  // namespace capstan::perf
