// perf_optimizer.cpp -- update rate of each optimizer's kernel in one process, in rows per second.
//
// Cases named "two threads" divide the entries of a push among two threads, as --ps-threads=2 does; their
// bound is one thread. Bound of the others: a plain loop that reads and writes the same bytes: the values,
// the gradient and as many slots as the optimizer has, with one addition each. A kernel is verified by
// comparing updates of complete rows with updates of single elements; tests/ps/kernels_test.cpp verifies the
// update rules.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "perf/bench/memory.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/row_case.hpp"
#include "perf/bench/row_loops.hpp"
#include "perf/bench/statistics.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/push_format.hpp"
#include "ps/durability/journal.hpp"
#include "ps/update/kernels.hpp"
#include "ps/update/update_in_groups.hpp"
#include "ps/update/update_parts.hpp"

namespace capstan::perf {
namespace {

constexpr std::uint64_t kSampleRows = 65536;

struct Named {
  const char* name;
  Optimizer optimizer;
};

/// Returns the optimizers to measure.
std::vector<Named> optimizers_to_measure() {
  return {
      {"sgd", optimizers::SGD{}},
      {"momentum", optimizers::Momentum{}},
      {"nesterov", optimizers::Momentum{.nesterov = true}},
      {"adagrad", optimizers::Adagrad{}},
      {"rmsprop", optimizers::RMSProp{}},
      {"adam", optimizers::Adam{}},
      {"adamw", optimizers::AdamW{}},
      {"ftrl", optimizers::FTRL{}},
  };
}

/// Values and slots, far larger than any cache.
struct Table {
  std::array<Array, 4> memory;
  std::vector<float*> arrays;  // the values first

  void make(std::size_t floats, std::size_t count, bool huge_pages) {
    arrays.clear();
    for (std::size_t a = 0; a < count; ++a) {
      const std::span<float> values = memory[a].get(floats, huge_pages);
      std::fill(values.begin(), values.end(), 0.5f);
      arrays.push_back(values.data());
    }
  }
  float* slot(std::size_t i) const { return i + 1 < arrays.size() ? arrays[i + 1] : nullptr; }
};

/// The rows that each sample updates: consecutive windows of a permutation of all rows, so that no row occurs
/// twice in a call.
class Windows {
 public:
  Windows(std::uint64_t rows, bool sparse, std::uint64_t seed) : order_(rows) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::mt19937_64 random(seed);
    if (sparse) std::shuffle(order_.begin(), order_.end(), random);
  }
  std::uint64_t size() const { return std::min<std::uint64_t>(kSampleRows, order_.size()); }
  const std::uint32_t* next() {
    if (next_ + size() > order_.size()) next_ = 0;
    next_ += size();
    return order_.data() + next_ - size();
  }

 private:
  std::vector<std::uint32_t> order_;
  std::size_t next_ = 0;
};

ps::Update<float> update_of(const Table& table, std::uint64_t width, bool sparse, const std::uint32_t* rows,
                            std::uint64_t count, const float* gradient) {
  ps::Update<float> update;
  update.values = table.arrays[0];
  update.slot0 = table.slot(0);
  update.slot1 = table.slot(1);
  update.width = width;
  update.rows = sparse ? rows : nullptr;
  update.first_row = sparse ? 0 : rows[0];
  update.count = count;
  update.gradient = gradient;
  return update;
}

/// Returns true if updates of complete rows and updates of single elements give the same table.
bool verified(const Optimizer& optimizer, std::size_t arrays, std::uint64_t width, bool sparse) {
  constexpr std::uint64_t kRows = 257;
  Windows windows(kRows, sparse, 1);
  const std::uint32_t* rows = windows.next();
  std::vector<float> gradient(kRows * width);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = pattern(i, 1) / 4194304.0f - 1;
  Table by_rows;
  Table by_elements;
  by_rows.make(kRows * width, arrays, false);
  by_elements.make(kRows * width, arrays, false);
  ps::apply(optimizer, update_of(by_rows, width, sparse, rows, kRows, gradient.data()));
  for (std::uint64_t i = 0; i < kRows; ++i) {
    for (std::uint64_t j = 0; j < width; ++j) {
      const std::uint32_t element = static_cast<std::uint32_t>(rows[i] * width + j);
      ps::apply(optimizer, update_of(by_elements, 1, true, &element, 1, &gradient[i * width + j]));
    }
  }
  bool moved = false;
  for (std::size_t a = 0; a < arrays; ++a) {
    for (std::size_t i = 0; i < kRows * width; ++i) {
      const float value = by_rows.arrays[a][i];
      if (!(std::abs(value - by_elements.arrays[a][i]) <= 1e-6f * (1 + std::abs(value)))) return false;
      moved = moved || value != 0.5f;
    }
  }
  return moved;
}

void measure_one(const Named& named, std::uint64_t width, bool sparse, const Options& o, Report& report) {
  const std::string group = fmt::format("{} {}", named.name, sparse ? "sparse" : "dense");
  const std::string name = fmt::format("{} dim={}", group, width);
  if (!o.wants(name)) return;
  static Table table;
  static Table plain;
  static Array gradient_memory;
  const std::size_t arrays = 1 + protocol::slots_of(named.optimizer.kind).size();
  const std::uint64_t rows = o.rows_of(width);
  table.make(rows * width, arrays, o.huge_pages);
  plain.make(rows * width, arrays, o.huge_pages);
  Windows windows(rows, sparse, o.seed);
  const std::uint64_t count = windows.size();
  const std::span<float> gradient = gradient_memory.get(count * width, o.huge_pages);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = pattern(i, 1) / 4194304.0f - 1;

  int ahead = kPrefetchDistances[0];
  const std::uint32_t* chosen = nullptr;
  const auto draw = [&] { chosen = windows.next(); };
  const auto kernel = [&] {
    ps::apply(named.optimizer, update_of(table, width, sparse, chosen, count, gradient.data()));
    use_memory();
  };
  const auto loop = [&] {
    std::vector<float*> from = plain.arrays;
    if (!sparse) {
      for (float*& array : from) array += chosen[0] * width;
    }
    add_rows(from, sparse ? chosen : nullptr, count, width, ahead, gradient.data());
    use_memory();
  };
  if (sparse) {
    ahead = best_distance([&](int distance) {
      draw();
      ahead = distance;
      return seconds_of(loop);
    });
  }
  Timings timings;
  take_turns(o.warmup, o.iters * o.repeat, NoBarrier(), true, draw, kernel, loop, timings);

  Result result{name, group, width, "floats a row", "rows/s"};
  result.verified = verified(named.optimizer, arrays, width, sparse);
  result = rate_result(std::move(result), static_cast<double>(count), timings.measured);
  result.bound = static_cast<double>(count) / median(timings.bound);
  result.bound_name = fmt::format("a loop over the same bytes, {} rows ahead", sparse ? ahead : 0);
  report.add(std::move(result));
}

/// Applies updates of scattered rows in entries of the size that a push ring of 1 MiB has, and logs them to a
/// journal, as a ps does.
class Entries {
 public:
  Entries(int threads, const Optimizer& optimizer, std::uint64_t width)
      : parts_(threads),
        optimizer_(optimizer),
        rows_(std::max<std::uint64_t>(kEntryBytes / (width * sizeof(float)), 1)),
        memory_(ps::Journal::bytes_for(2 * kEntryBytes) / sizeof(Line) + 1),
        journal_(reinterpret_cast<std::byte*>(memory_.data()), memory_.size() * sizeof(Line)) {}

  void apply(const Table& table, std::uint64_t width, const std::uint32_t* rows, std::uint64_t count,
             const float* gradient) {
    std::vector<std::byte*> slots;
    for (std::size_t a = 1; a < table.arrays.size(); ++a)
      slots.push_back(reinterpret_cast<std::byte*>(table.arrays[a]));
    for (std::uint64_t first = 0; first < count; first += rows_) {
      journal_.begin({}, 0, 0, 0);
      parts_.apply(update_of(table, width, true, rows + first, std::min(rows_, count - first),
                             gradient + first * width),
                   [&](const ps::Update<float>& part, std::size_t number) {
                     const auto group = [&](const ps::Update<float>& u) { ps::apply(optimizer_, u); };
                     ps::apply_in_groups(part, table.arrays[0], slots, journal_, group, number);
                   });
    }
  }

 private:
  static constexpr std::uint64_t kEntryBytes = 262144;
  struct alignas(protocol::kCacheLine) Line {
    std::byte bytes[protocol::kCacheLine];
  };

  ps::UpdateParts parts_;
  Optimizer optimizer_;
  std::uint64_t rows_;
  std::vector<Line> memory_;
  ps::Journal journal_;
};

void measure_two_threads(const Named& named, std::uint64_t width, const Options& o, Report& report) {
  const std::string group = fmt::format("{} two threads", named.name);
  const std::string name = fmt::format("{} dim={}", group, width);
  if (!o.wants(name)) return;
  const std::size_t arrays = 1 + protocol::slots_of(named.optimizer.kind).size();
  const std::uint64_t rows = o.rows_of(width);
  static Table by_two;
  static Table by_one;
  by_two.make(rows * width, arrays, o.huge_pages);
  by_one.make(rows * width, arrays, o.huge_pages);
  Windows windows(rows, true, o.seed);
  const std::uint64_t count = windows.size();
  std::vector<float> gradient(count * width);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = pattern(i, 1) / 4194304.0f - 1;
  Entries two(2, named.optimizer, width);
  Entries one(1, named.optimizer, width);
  const std::uint32_t* chosen = windows.next();
  int turn = 0;
  const auto draw = [&] {
    if (turn++ % 2 == 0) chosen = windows.next();  // both update the same rows
  };
  Timings timings;
  take_turns(
      o.warmup, o.iters * o.repeat, NoBarrier(), true, draw,
      [&] { two.apply(by_two, width, chosen, count, gradient.data()); },
      [&] { one.apply(by_one, width, chosen, count, gradient.data()); }, timings);

  Result result{name, group, width, "floats a row", "rows/s"};
  result.verified = true;
  for (std::size_t a = 0; a < arrays; ++a) {
    const std::span<const float> expected(by_one.arrays[a], rows * width);
    result.verified &= std::equal(expected.begin(), expected.end(), by_two.arrays[a]);
    const bool moved = std::any_of(expected.begin(), expected.end(), [](float x) { return x != 0.5f; });
    result.verified &= moved;
  }
  result = rate_result(std::move(result), static_cast<double>(count), timings.measured);
  result.bound = static_cast<double>(count) / median(timings.bound);
  result.bound_name = "one thread";
  report.add(std::move(result));
}

void measure_all(const Options& options, Report& report) {
  for (const Named& named : optimizers_to_measure()) {
    for (const bool sparse : {true, false}) {
      for (const std::uint64_t dim : options.dims) measure_one(named, dim, sparse, options, report);
    }
    for (const std::uint64_t dim : options.dims) measure_two_threads(named, dim, options, report);
  }
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  return capstan::perf::run_here(
      argc, argv,
      "Measures rows per second of every optimizer's kernel, sparse and dense, and with two threads.",
      &capstan::perf::measure_all);
}
